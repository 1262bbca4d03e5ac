"""Each kind of message, as each version of NCCL printed it, becomes the row it should."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.sources.nccl_logs import HEAD, LogReading, call, init

ReadLog = Callable[..., LogReading]

MESSAGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a communicator of 2.4 to 2.17": (
        "comm 0x1471e8002fb0 rank 13 nranks 16 cudaDev 1 busId 1c000 - Init COMPLETE",
        "communicator",
        {"rank": 13, "rank_count": 16, "device": 1, "pci_address": "0000:1c:00.0", "comm_hash": None},
    ),
    "a communicator of 2.18 to 2.20": (
        "comm 0x55f3 rank 10 nranks 16 cudaDev 2 nvmlDev 4 busId 75000 commId 0xd0eaa3973aece91a - Init COMPLETE",
        "communicator",
        {"rank": 10, "nvml_device": 4, "comm_hash": "0xd0eaa3973aece91a", "api": None},
    ),
    "a communicator of 2.29": (
        "[Rank 0] ncclCommInitRank comm 0x56 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId a000 commId 0x35 - Init START",
        "communicator",
        {"rank": 0, "api": "ncclCommInitRank", "comm_hash": "0x35", "complete_record_id": None},
    ),
    "a split of 2.24, without a blank before its dash": (
        ("ncclCommSplit comm 0x56 rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId a000 parent 0x44 splitCount 1 color 7"
        " key 3- Init START"),
        "communicator",
        {"rank": 1, "rank_count": 2, "parent_pointer": 0x44, "split_color": 7, "split_key": 3},
    ),
    "a communicator of RCCL": (
        ("comm 0x55a9 rank 0 nranks 2 cudaDev 0 busId 3000 commId 0xdf38 localSize 192 used 134323280 bytes"
        " - Init COMPLETE"),
        "communicator",
        {"rank": 0, "rank_count": 2, "comm_hash": "0xdf38"},
    ),
    "a connection over the network with PXN and GPU Direct RDMA": (
        "Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/2(0)/GDRDMA",
        "link",
        {"source_rank": 3, "target_rank": 4, "transport": "NET", "network": "IB", "nic": 2, "proxy_rank": 0,
         "is_gdr": True, "direction": "send", "connection_index": 0},
    ),
    "a connection of a network whose name has a blank": (
        "Channel 03/0 : 0[0] -> 8[0] [receive] via NET/AWS Libfabric/4",
        "link",
        {"network": "AWS Libfabric", "nic": 4, "is_gdr": False, "direction": "receive", "channel": 3},
    ),
    "GPU Direct RDMA through PCI": (
        "Channel 00/0 : 0[0] -> 8[0] [send] via NET/IBext_v8/7/GDRDMA(PCI)/Shared",
        "link",
        {"network": "IBext_v8", "nic": 7, "is_gdr": True},
    ),
    "a connection through shared memory, without an index": (
        "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
        "link",
        {"transport": "SHM", "mode": "direct/direct", "connection_index": None, "is_gdr": None},
    ),
    "a connection through shared memory until 2.13": (
        "Channel 00 : 0[1a000] -> 1[1b000] via direct shared memory",
        "link",
        {"transport": "SHM", "source_device": "1a000"},
    ),
    "a connection of 2.5, which calls it a ring": (
        "Ring 00 : 3[c0] -> 0[80] via P2P/IPC",
        "link",
        {"transport": "P2P", "mode": "IPC", "source_rank": 3, "target_rank": 0},
    ),
    "a ring member since 2.10": (
        "Ring 02 : 7 -> 0 -> 1",
        "ring_member",
        {"channel": 2, "previous_rank": 7, "rank": 0, "next_rank": 1},
    ),
    "a tree until 2.7, printed twice": (
        "Trees [0] 38/-1/-1->37->36|36->37->38/-1/-1",
        "tree",
        {"channel": 0, "rank": 37, "parent_rank": 36, "child_ranks": [38]},
    ),
    "an algorithm choice of 2.24": (
        "AllReduce: 33554432 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}",
        "tuning",
        {"op": "AllReduce", "size_bytes": 33554432, "algorithm": "ring", "protocol": "simple", "channel_high": 31},
    ),
    "an algorithm choice until 2.22, with a predicted time": (
        "1048576 Bytes -> Algo 1 proto 2 time 123.4",
        "tuning",
        {"op": None, "algorithm": "ring", "protocol": "simple", "predicted_ns": 123_400},
    ),
    "a setting": (
        "NCCL_IB_GID_INDEX set by environment to 3.",
        "environment",
        {"name": "NCCL_IB_GID_INDEX", "value": "3", "origin": "environment"},
    ),
    "GPU Direct RDMA refused by distance": (
        "GPU Direct RDMA Disabled for GPU 81000 / HCA 1 (distance 8 > 4)",
        "gdr",
        {"is_enabled": False, "gpu": "81000"},
    ),
    "NVLink SHARP missing": (
        "NVLS multicast support is not available on dev 1",
        "nvls",
        {"event": "support", "is_available": False, "device": 1},
    ),
    "a completion error of 2.20": (
        ("NET/IB: Got completion from peer 10.99.91.63<51161> with status=12 opcode=32614 len=0 vendor err 129 (Send)"
        " localGid ::ffff:10.99.92.59 remoteGids::ffff:10.99.92.60 hca mlx5_1"),
        "event",
        {"kind": "completion_error", "code": 12, "vendor_error": 129, "peer": "10.99.91.63", "nic_name": "mlx5_1"},
    ),
    "an unwinding error": (
        "transport/net.cc:1134 -> 6",
        "event",
        {"kind": "unwinding", "place": "transport/net.cc:1134", "code": 6},
    ),
    "a proxy thread": (
        "[Proxy Progress] Device 5 CPU core 89",
        "cpu_placement",
        {"subject": "Proxy Progress", "device": 5, "cpu_core": 89},
    ),
    "a setting that the plug-in of EFA makes": (
        "NET/OFI Adding NCCL_PROTO=simple to environment",
        "environment",
        {"name": "NCCL_PROTO", "value": "simple", "origin": "plugin"},
    ),
    "GPU Direct RDMA that EFA does not have": (
        "NET/OFI Could not disable CUDA API usage for HMEM, disabling GDR",
        "gdr",
        {"is_enabled": False, "reason": "Could not disable CUDA API usage for HMEM"},
    ),
    "a request that libfabric gave up": (
        "NET/OFI Request 0x7f45 completed with error. RC: 103. Error: 4126 (Unresponsive receiver)",
        "event",
        {"kind": "request_failed", "code": 103},
    ),
    "memory that EFA does not take": (
        "NET/OFI Unable to register memory (type = 2) for device 4. RC: -22, Error: Invalid argument",
        "event",
        {"kind": "request_failed", "code": -22},
    ),
    "affinity as ranges of cores": (
        "Setting affinity for GPU 3 to 0-23,48-71",
        "cpu_placement",
        {"device": 3, "cpu_set": "0-23,48-71", "is_near_gpu": True},
    ),
    "affinity that is missing": (
        "ncclTopoGetCpuAffinity: Affinity for GPU 6 is empty, ignoring. (GPU affinity = 56-111 ; CPU affinity = 0-55).",
        "cpu_placement",
        {"is_near_gpu": False, "device": 6},
    ),
    "affinity of a device near which no core is known to be": (
        "ncclTopoGetCpuAffinity: Affinity for GPU 6 is empty, ignoring. (GPU affinity =  ; CPU affinity = 0-111).",
        "cpu_placement",
        {"is_near_gpu": None, "device": 6, "cpu_set": "0-111"},
    ),
    "a pattern of the graph search": (
        "Pattern 4, crossNic 0, nChannels 8, bw 24.000000/12.5, type NVL/PXB, sameChannels 1",
        "graph",
        {"pattern": "ring", "intra_bandwidth_bytes_per_s": 24_000_000_000, "inter_path_type": "PXB"},
    ),
    "what may drive the network": (
        "Using network Socket",
        "plugin",
        {"kind": "NET", "event": "used", "name": "Socket"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MESSAGES)
def test_every_kind_of_message_becomes_its_row(read_log: ReadLog, kind: str) -> None:
    message, table, expected = MESSAGES[kind]

    log = read_log(HEAD + message)

    row = log.row(table)
    assert {name: row[name] for name in expected} == expected
    assert log.rows("unparsed") == []


def test_a_collective_call_states_its_bytes(read_log: ReadLog) -> None:
    log = read_log(init(comm=0xA0), call(comm=0xA0, elements=256, op_count=0x2F))

    row = log.row("collective_call")
    assert (row["op"], row["element_count"], row["datatype"], row["size_bytes"]) == ("AllReduce", 256, "float32", 1024)
    assert row["op_count"] == 0x2F
    assert row["handle_id"] == log.row("communicator")["handle_id"]


def test_a_nil_pointer_and_rccls_own_words_are_read(read_log: ReadLog) -> None:
    line = call().replace("0x7f00", "(nil)").replace("stream 0x55", "stream (nil) task 3 globalrank 12")

    row = read_log(line).row("collective_call")

    assert (row["send_address"], row["stream"], row["task"], row["global_rank"]) == (0, 0, 3, 12)


def test_a_pointer_given_out_again_after_a_destroy_is_another_communicator(read_log: ReadLog) -> None:
    destroy = HEAD.replace("4720", "4711") + "comm 0xa0 rank 0 nranks 2 cudaDev 0 busId 1000 - Destroy COMPLETE"

    log = read_log(init(ranks=2), call(ranks=2), destroy, init(ranks=8), call(ranks=8))

    first, second = log.rows("collective_call")
    assert first["handle_id"] != second["handle_id"]
    assert sorted(row["rank_count"] for row in log.rows("communicator")) == [2, 8]


def test_a_pointer_means_another_communicator_in_another_process(read_log: ReadLog) -> None:
    log = read_log(init(pid=1, rank=0), init(pid=2, rank=1), call(pid=1), call(pid=2))

    assert len({row["handle_id"] for row in log.rows("collective_call")}) == 2


def test_calls_without_any_init_still_make_a_communicator(read_log: ReadLog) -> None:
    log = read_log(call(ranks=8), call(ranks=8))

    communicator = log.row("communicator")
    assert (communicator["comm_pointer"], communicator["rank_count"]) == (0xA0, 8)
    assert len(log.rows("collective_call")) == 2


def test_what_rccl_says_of_itself_is_known(read_log: ReadLog) -> None:
    log = read_log(
        init(comm=0xA0),
        *(
            HEAD + message
            for message in (
                "Kernel version: 6.17.0-19-generic",
                "Hipruntime version: 70226015, firmware version: 2650",
                "ROCr version 1.18",
                "Dmabuf feature disabled without NCCL_DMABUF_ENABLE=1",
                "Comm config Blocking set to 1",
                "[node_id = 3; gpu_id = 4479; unique_id = 0; location_id = 5632; bdf = 5632; domain = 0], ",
                "initialized internal alternative rsmi functionality",
                "Retrieving state for Socket",
                "Initialized state 0 for Socket",
                "ncclTopoPopulateNics : Filled eno1 in topo with pciPath=(null) keep=1 coll=(null)",
                "[RINGS]  00->01",
                "Imported shareable buffer device 0 size 6291456 ptr 0x797385600000",
                "RCCL Unroll Factor (pre-set): 4",
                "NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 36 mtu 3 GID 1 (0/19001EACFFFF0000) fifoRkey=0x59b1",
                (
                    "comm:0xa0, nRanks:2, nNodes:1, coll channels:2 collnet channels:3, nvls channels:0, "
                    "p2p channels:4, p2p channels per peer:1"
                ),
            )
        ),
    )

    assert log.rows("unparsed") == []
    counts = ("channel_count", "collnet_channel_count", "p2p_channel_count", "p2p_channels_per_peer")
    assert [log.row("communicator")[name] for name in counts] == [2, 3, 4, 1]


def test_a_message_that_no_rule_reads_is_counted_as_a_template(read_log: ReadLog) -> None:
    log = read_log(HEAD + "Frobnicated 17 flanges", HEAD + "Frobnicated 4 flanges")

    row = log.row("unparsed")
    assert (row["template"], row["record_count"]) == ("Frobnicated # flanges", 2)
    assert log.file["understood_count"] == 0


def test_an_unknown_warning_is_kept_with_its_text(read_log: ReadLog) -> None:
    line = "[2026-03-03 12:11:38] node-1:1:2 [0] foo.cc:12 (ncclFoo) NCCL WARN Something odd"

    row = read_log(line).row("event")

    assert (row["kind"], row["place"], row["text"]) == ("warning", "foo.cc:12", "Something odd")


def test_a_warning_of_a_plug_in_in_cpp_has_its_process_and_stays_a_warning(read_log: ReadLog) -> None:
    place = "int cm_req_handle_error_entry(nccl_net_ofi_context_t*, fid_cq*, fi_cq_err_entry*, uint16_t):46"
    line = f"[2026-03-03 12:11:38] node-1:194:710 [0] {place} NCCL WARN NET/OFI Only EFA provider is supported"

    log = read_log(line)

    assert (log.row("process")["host"], log.row("process")["pid"]) == ("node-1", 194)
    assert (log.row("event")["kind"], log.row("event")["place"]) == ("warning", place)
    assert log.rows("plugin") == []


def test_trees_lose_their_last_number_where_the_buffer_ended(read_log: ReadLog) -> None:
    head = "n:1:1 [0] NCCL INFO "
    trees = "Trees" + "".join(f" [{channel}] 1/-1/-1->0->-1" for channel in range(80))
    cut = (head + trees)[:1023]

    log = read_log(cut)

    whole = cut.count("->-1 [")
    assert len(log.rows("tree")) in (whole, whole - 1)
    assert "nccl_cut_record" in log.codes


def test_a_table_of_nccl_tests_gives_ranks_and_bandwidths(read_log: ReadLog) -> None:
    log = read_log(
        "#  Rank  0 Group  0 Pid  36217 on  gcn1 device  0 [0x26] NVIDIA H100",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw",
        "    1048576       262144     float     sum      -1    33.05   31.73   47.59      0   32.90   31.87   47.81 0",
    )

    assert (log.row("bench_rank")["pid"], log.row("bench_rank")["rank"]) == (36217, 0)
    out_of_place, in_place = log.rows("bench")
    assert (out_of_place["duration_ns"], out_of_place["bus_bandwidth_bytes_per_s"]) == (33_050, 47_590_000_000)
    assert in_place["is_in_place"]


def test_a_watchdogs_report_names_the_collective_that_never_ended(read_log: ReadLog) -> None:
    log = read_log(
        "[rank3]:[E ProcessGroupNCCL.cpp:61] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=35,"
        " OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
    )

    row = log.row("watchdog")
    assert (row["rank"], row["sequence"], row["op"]) == (3, 35, "ALLREDUCE")
    assert row["age_ns"] == 600_029_000_000
