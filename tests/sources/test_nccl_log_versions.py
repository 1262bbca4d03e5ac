"""What the first and the last versions print otherwise: NCCL 2.4, 2.30 to 2.32, and RCCL 2.27."""

from collections.abc import Callable

import pytest

from tests.sources.nccl_logs import HEAD, LogReading, call

ReadLog = Callable[..., LogReading]


def test_functions_beside_places_hide_no_unwinding(read_log: ReadLog) -> None:
    log = read_log(HEAD + "init.cc:20 (initTransports) -> 1", HEAD + "group.cc:7 (asyncJob) -> 1 [Async thread]")

    events = [(row["kind"], row["place"], row["code"]) for row in log.rows("event")]
    assert events == [("unwinding", "init.cc:20", 1), ("unwinding", "group.cc:7", 1)]


def test_allocations_are_known_with_and_without_a_function(read_log: ReadLog) -> None:
    log = read_log(
        *(
            HEAD + f"{place} {text}"
            for place in ("init.cc:20", "init.cc:20 (ncclInit)")
            for text in (
                "Cuda Alloc Size 16 pointer 0x7f4e memType 1",
                "Cuda Host Alloc Size 4 pointer 0x204a",
                "Ib Alloc Size 64 pointer 0x7f",
                "memory stack hunk malloc(65536)",
            )
        )
    )

    assert set(log.rules) == {"allocation"}


def test_choices_with_the_size_of_a_cluster_are_read_both_ways(read_log: ReadLog) -> None:
    # given lines of which the first teaches the fast way what such lines look like, among lines without those words
    choice = HEAD + "AllReduce: {} Bytes -> Algo RING proto LL channel{{Lo..Hi}}={{0..1}}"
    sizes = range(1024, 1024 + 200)

    log = read_log(*(choice.format(size) + " cgaClusterSize 4" * (size % 2) for size in sizes))

    assert [row["size_bytes"] for row in log.rows("tuning")] == list(sizes)
    assert {(row["algorithm"], row["protocol"], row["channel_high"]) for row in log.rows("tuning")} == {
        ("ring", "ll", 1)
    }
    assert log.rows("unparsed") == []


def test_what_deserves_attention_is_kept_and_is_no_warning(read_log: ReadLog) -> None:
    line = "[2026-11-01 10:00:00] node-1:4711:4720 [0] net.cc:10 (ncclNetInit) NCCL ATTN Something to look at"

    log = read_log(line)

    assert (log.row("event")["kind"], log.row("event")["place"]) == ("attention", "net.cc:10")
    assert (log.row("record")["level"], log.row("process")["pid"]) == ("ATTN", 4711)


def test_diagnostics_of_ras_which_name_no_thread_have_their_process(read_log: ReadLog) -> None:
    log = read_log("node-1:4711 NCCL DIAG Xid 79 detected 12 s ago on host node-1")

    assert (log.row("event")["kind"], log.row("event")["text"]) == (
        "diagnosis",
        "Xid 79 detected 12 s ago on host node-1",
    )
    assert (log.row("process")["host"], log.row("process")["pid"]) == ("node-1", 4711)
    assert log.row("record")["tid"] is None


KNOWN = (
    "Threads per block : 512/640/512",
    "Plugin name set by env to libnccl-net-x.so",
    "Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so",
    "Plugin version : 1.2@site",
    "dlvsym failed on mlx5dv_reg_dmabuf_mr - /lib/libmlx5.so: undefined symbol: mlx5dv_reg_dmabuf_mr",
    "GPU 0 / HCA 1 connected to CPU 3 via C2C link",
    "Invalid value many for NCCL_NTHREADS, using default -2.",
    "ENV: NCCL_X is private. Its function may change without notice across versions.",
    "NCCL_MIN_CTAS 0 is too low, leaving it set at 1",
    "User asked for a maximum of 2 channels, setting it to 1",
    "Rank 3 has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator",
    "Rank 3: 0 CollNet devices",
    "[Proxy Service] Created CUDA context on device 3",
    "UDS: Creating service thread comm 0x7f rank 3",
    "proxyUDSRecvReq::ncclProxyMsgGetFd rank 3 opId 0x7f handle=0x1f",
    "sendConnect ncclProxyCallAsync opId=0x7f",
    "recvOpId=0x7f matches expected opId=0x7f",
    "socket.cc:500 (socketAccept) Call to accept returned Interrupted system call, retrying",
    "p2p.cc:7 (p2pAlloc) Imported shareable buffer device 3 size 64 ptr 0x7f",
    "rank 3 - IPC registered buffer 0x7f size 64 (baseAddr 0x7f size 64) to peer 1 regAddr 0x7f offsetOut 0",
    "rank 3 failed to NET register userbuff 0x7f buffSize 64 GDR flag 0",
    "Loading topology file /var/run/topo.xml",
    "NET/Socket: Using 2 threads and 8 sockets per thread",
    "NET/IB: Dev 0 Port 1 qpn 36 mtu 5 LID 3",
    "NET/gIB: IbDev 6 Port 1 qpn 2440 se",
    "NET/IB: ncclIbResiliencyInit: Port recovery is enabled for the resiliency context (comm=0x7)",
    "Connected CollNet",
    "NVLS importing shareableHandle 0x7f from rank 3",
)


@pytest.mark.parametrize("message", KNOWN)
def test_what_nccl_says_of_its_own_work_is_known(read_log: ReadLog, message: str) -> None:
    assert read_log(HEAD + message).rows("unparsed") == []


def test_a_warning_of_known_words_is_kept_with_its_text(read_log: ReadLog) -> None:
    text = "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX channel configuration"

    row = read_log(f"node-1:4711:4720 [0] mnnvl.cc:40 NCCL WARN {text}").row("event")

    assert (row["kind"], row["text"]) == ("warning", text)


def test_calls_of_rccl_that_accumulate_are_read_both_ways(read_log: ReadLog) -> None:
    # given calls with and without RCCL's words at the end, and those of 2.27 in the middle, in turns; each form's first
    # line is read by itself and teaches the fast way what such lines look like
    def line(number: int) -> str:
        plain = call(elements=number, op_count=number).replace("0x7f00", f"0x{number:x}")
        more = plain if number % 3 == 0 else f"{plain} task 0 globalrank 5"
        return more.replace(" count ", " acc (nil) count ") if number % 3 == 2 else more

    numbers = range(1000, 1300)

    log = read_log(*(line(number) for number in numbers))

    rows = log.rows("collective_call")
    read = [(row["op_count"], row["element_count"], row["receive_address"], row["global_rank"]) for row in rows]
    assert read == [(number, number, rows[0]["receive_address"], None if number % 3 == 0 else 5) for number in numbers]
    assert [row["send_address"] for row in rows] == list(numbers)
    assert log.rows("unparsed") == []


def test_what_rccl_says_of_channels_beside_each_call_is_known(read_log: ReadLog) -> None:
    log = read_log(
        *(
            HEAD + message
            for message in (
                "pre-adjustment threadThreshold:16 nBytes:4 nc:2",
                "minNChannels:-2",
                "post-adjustment based on threadThreshold:16 nBytes:4 nc:1",
                "RCCL PXN set as disabled",
            )
        ),
        HEAD + "RCCL version : 2.27.7-HEAD:29e1567",
    )

    assert log.rows("unparsed") == []
    assert log.row("version")["version"] == "2.27.7"


def test_connections_of_2_4_belong_to_the_init_that_runs(read_log: ReadLog) -> None:
    log = read_log(
        HEAD + "CUDA Dev 0[0], Socket NIC distance :  SYS",
        HEAD + "Channel 00 :    0   1",
        HEAD + "Ring 00 : 0 -> 1 [send] via NET/Socket/0",
        HEAD + "Using 256 threads, Min Comp Cap 6, Trees disabled",
        HEAD + "comm 0x7f3f rank 0 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE",
    )

    assert log.rows("unparsed") == []
    assert log.row("link")["handle_id"] == log.row("communicator")["handle_id"]


def test_a_device_that_is_no_pci_device_has_no_address(read_log: ReadLog) -> None:
    log = read_log(HEAD + "NET/IB: [1] soft0:uverbs1:1/RoCE provider=None speed=400000 context=0x5 pciPath=(null) ar=0")

    assert (log.row("nic")["name"], log.row("nic")["pci_address"]) == ("soft0", None)
