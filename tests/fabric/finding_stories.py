"""Logs of small jobs, each of which one rule of findings is for, and of healthy ones."""

from collections.abc import Callable

from tests.fabric.logs import Process
from tests.fabric.network_stories import fallen_back, joined_by_nvlink

GDR = "NET/IB/{}/GDRDMA"
Pair = list[Process]


def pair(via: str = GDR) -> Pair:
    """Two ranks on two hosts, one NIC each, joined by a ring."""
    first, second = Process(0, host="a").init(), Process(1, host="b").init()
    for process in (first, second):
        process.says("NCCL version 2.27.5+cuda12.9", "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>")
    first.sends(1, via.format(0)).receives(1, via.format(0))
    second.sends(0, via.format(0)).receives(0, via.format(0))
    return [first, second]


def sockets() -> Pair:
    return pair("NET/Socket/{}")


def no_gdr() -> Pair:
    return pair("NET/IB/{}")


def two_networks() -> Pair:
    """The second host sees no InfiniBand."""
    first, second = Process(0, host="a"), Process(1, host="b")
    first.says("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", "Using network IB").init()
    second.says("NET/IB : No device found.", "NET/Socket : Using [0]eth0:10.0.0.2<0>", "Using network Socket").init()
    return [first, second]


def rails() -> Pair:
    first, second = pair()
    return [first.sends(1, GDR.format(0), channel=1), second.receives(0, GDR.format(1), channel=1).sends(
        0, GDR.format(0), channel=1)]  # fmt: skip


def unconnected() -> Pair:
    """Two hosts over EFA, whose logs end with the init."""
    reason = "NET/OFI Could not disable CUDA API usage for HMEM, disabling GDR"
    return [Process(rank, host="ab"[rank]).says(reason).init() for rank in range(2)]


def far() -> Pair:
    first, second = pair()
    first.says("=== System : maxBw 24.0 totalBw 24.0 ===", "GPU/0-10000 :NET/0-0 (5/12.0/SYS) NET/0-1 (3/24.0/PIX) ")
    return [first, second]


def shared() -> Pair:
    """Two ranks a host, one NIC for both although there are two."""
    processes = [Process(rank, host="ab"[rank // 2], device=rank % 2).init(size=4) for rank in range(4)]
    for process in processes:
        process.says("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>")
        process.sends((process.rank + 2) % 4, GDR.format(0)).receives((process.rank + 2) % 4, GDR.format(0))
    return processes


def shared_over_efa() -> Pair:
    """The same over EFA, whose plug-in lists NICs as OFI's and connects as Libfabric's; connections cross rails."""
    for_all = ["NET/OFI NIC group 0 device #0 0000:31:00.0", "NET/OFI NIC group 1 device #0 0000:4b:00.0"]
    processes = [Process(rank, host="ab"[rank // 2], device=rank % 2).init(size=4) for rank in range(4)]
    for process in processes:
        other = (process.rank + 2) % 4
        own = process.says(*for_all).sends(other, f"NET/AWS Libfabric/{process.rank // 2}/GDRDMA")
        own.receives(other, f"NET/AWS Libfabric/{process.rank // 2}/GDRDMA")
    return processes


def relayed() -> Pair:
    first, second = pair()
    return [first.sends(1, "NET/IB/0(1)/GDRDMA", channel=1), second]


def through_memory() -> Pair:
    processes = [Process(rank, device=rank).init() for rank in range(2)]
    processes[0].sends(1, "SHM/direct/direct").says("NCCL_P2P_DISABLE set by environment to 1.")
    return [processes[0], processes[1].sends(0, "SHM/direct/direct")]


def across_numa() -> Pair:
    """Four GPUs, two a NUMA node, in the ring 0 2 1 3: it crosses four times."""
    processes = [Process(rank, device=rank).init(size=4) for rank in range(4)]
    bus = [f"GPU/0-{0x10000 * (rank + 1):x}" for rank in range(4)]
    for a, process in enumerate(processes):
        paths = " ".join(f"{bus[b]} (2/10.0/{'SYS' if a // 2 != b // 2 else 'PIX'})" for b in range(4))
        process.says(f"{bus[a]} :{paths} ")
    ring = [0, 2, 1, 3]
    for a, b in zip(ring, [*ring[1:], 0], strict=True):
        processes[a].sends(b, "P2P/IPC")
    return processes


def few_channels() -> Pair:
    return [
        process.says(
            "4 coll channels, 4 p2p channels, 1 p2p channels per peer", "NCCL_MAX_NCHANNELS set by environment to 4."
        )
        for process in pair()
    ]


def no_nvls() -> Pair:
    first, second = pair()
    first.says("NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)")
    return [first, second.says("NVLS multicast support is not available on dev 0")]


def slow_link() -> Pair:
    """NICs state their speeds; that of the second host has come up at a quarter of it."""
    first, second = pair()
    for process, speed in ((first, 400_000), (second, 100_000)):
        process.says(f"NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed={speed} context=0x5 pciPath=/sys/x ar=0")
    return [first, second]


def environments() -> Pair:
    first, second = pair()
    first.says("NCCL_BUFFSIZE set by environment to 8388608.")
    return [first, second.says("NCCL_BUFFSIZE set by environment to 1048576.")]


def one_host_unset() -> Pair:
    """Two processes on each of two hosts; the second host does not know the setting."""
    processes = [Process(rank, host="ab"[rank // 2], device=rank % 2).init(size=4) for rank in range(4)]
    for process in processes:
        process.lines.insert(0, process.lines[0].split("comm ")[0] + "Bootstrap: Using eth0:10.0.0.1<0>")
    return [process.says("NCCL_IB_TC set by environment to 106.") if process.host == "a" else process
            for process in processes]  # fmt: skip


def versions() -> Pair:
    first, second = pair()
    second.lines = [line.replace("2.27.5", "2.26.2") for line in second.lines]
    return [first, second]


def slow_init() -> Pair:
    timing = "Init timings - ncclCommInitRank: rank {} nranks 2 total 31.20 (kernels 30.10, alloc 0.20, bootstrap 0.50)"
    return [process.says(timing.format(process.rank)) for process in pair()]


def late() -> Pair:
    processes = pair()
    for process in processes:
        for _ in range(120):
            process.calls()
        process.init(comm=0xB0, comm_hash="0x2")
    return processes


def unbound() -> Pair:
    text = (
        "ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity = 56-111 ; CPU affinity = 0-9)."
    )
    return [process.says(text) for process in pair()]


def unknown_cores() -> Pair:
    """As in virtual machines: NCCL knows of no core near the device, and the process may use all."""
    text = "ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity =  ; CPU affinity = 0-111)."
    return [process.says(text) for process in pair()]


def broken_link() -> Pair:
    first, second = pair()
    first.says(
        "NET/IB: Got completion from peer 10.0.0.2<5116> with status=12 opcode=0 len=0 vendor err 129 (Send)"
        " localGid ::1 remoteGids::2 hca mlx5_0"
    )
    return [first, second]


def _failed(process: Process, *, gave_up: bool) -> Process:
    """A connection fails: NCCL tries again, or gives up, and the functions that return say so."""
    head = process.lines[0].split(" NCCL INFO ")[0]
    process.lines.append(
        f"{head} /src/misc/socket.cc:64 NCCL WARN socketProgressOpt: Call to recv from 10.0.0.3<38541> failed : "
        "Connection reset by peer"
    )
    return process.says("misc/socket.cc:807 -> 6") if gave_up else process


def broken_connection() -> Pair:
    first, second = pair()
    return [first, _failed(second, gave_up=True)]


def one_gpu() -> Pair:
    """Both ranks chose device 0; NCCL says so, and its functions return the error."""
    processes = [Process(rank) for rank in range(2)]
    for process in processes:
        head = process.says("Bootstrap: Using eth0:10.0.0.1<0>").lines[0].split(" NCCL INFO ")[0]
        process.lines.append(f"{head} init.cc:943 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 on device 1b000")
        process.says("init.cc:1358 -> 5", "group.cc:65 -> 5 [Async thread]")
    return processes


def lost_request() -> Pair:
    """EFA gives up two requests of rank 1, as its peer does not answer."""
    first, second = pair("NET/Libfabric/{}/GDRDMA")
    what = "completed with error. RC: 103. Error: 4126 (Unresponsive receiver)"
    for request in ("0x7f01", "0x7f02"):
        second.says(f"NET/OFI Request {request} {what}")
    return [first, second]


def _ended(process: Process, meaning: str, result: str, words: str) -> Process:
    """PyTorch ends a rank with an error of NCCL."""
    who = f"[rank{process.rank}]: "
    process.lines += [
        f"{who}DistBackendError: NCCL error in: /c10d/ProcessGroupNCCL.cpp:3690, {meaning}, NCCL version 2.27.3",
        f"{who}{result}: A call failed.",
        f"{who}Last error:",
        f"{who}{words}",
    ]
    return process


def gave_up() -> Pair:
    """Nobody set NCCL_DEBUG: rank 1 cannot register memory, and rank 0 loses it."""
    first, second = Process(0), Process(1)
    _ended(first, "remote process exited", "ncclRemoteError", "Connection closed by remote peer b<50012>")
    return [first, _ended(second, "unhandled system error", "ncclSystemError", "Call to ibv_reg_mr failed")]


def warned_and_gave_up() -> Pair:
    """With NCCL_DEBUG=WARN, in which no function says that it gives up."""
    first, second = failure_survived()
    return [first, _ended(second, "remote process exited", "ncclRemoteError", "Connection reset by peer")]


def told_and_gave_up() -> Pair:
    """With NCCL_DEBUG=INFO, which says more than the exception."""
    first, second = broken_connection()
    return [first, _ended(second, "remote process exited", "ncclRemoteError", "Connection reset by peer")]


def failure_survived() -> Pair:
    return [_failed(process, gave_up=False) for process in pair()]


def one_missing() -> Pair:
    """Two of three ranks begin, and wait for the third."""
    start = "ncclCommInitRank comm 0xa0 rank {} nranks 3 cudaDev 0 nvmlDev 0 busId 10000 commId 0xfeed - Init START"
    return [Process(rank, host="ab"[rank]).says(start.format(rank)) for rank in range(2)]


def balancing() -> Pair:
    first, second = pair()
    head = first.lines[0].split(" NCCL INFO ")[0]
    first.lines.append(f"{head} init.cc:128 NCCL WARN NUMA auto balancing enabled which can lead to variability")
    return [first, second]


def asked_ras() -> Pair:
    """The answer of NCCL's RAS: rank 7 is behind."""
    first = Process(0)
    first.lines += [
        "NCCL version 2.27.5 compiled with CUDA 12.9",
        "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors",
        "Warnings",
        "========",
        "",
        "#0-0 (78db921d1c117b4a) MISMATCH",
        "  Communicator ranks have different AllReduce operation counts",
        "  7 ranks have launched up to operation 64",
        "  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650 on node b",
        "",
    ]
    return [first]


def flapping() -> Pair:
    first, second = pair()
    return [first.says("NET/IB : mlx5_0:1 Got async error event: port error"), second]


def out_of_step() -> Pair:
    first, second = pair()
    return [first.calls().calls("AllReduce"), second.calls().calls("Broadcast")]


def one_behind() -> Pair:
    """Rank 2 stops after two of three equal calls."""
    processes = [Process(rank, device=rank).init(size=3) for rank in range(3)]
    for process in processes:
        for _ in range(2 if process.rank == 2 else 3):
            process.calls(size=3)
    return processes


def stuck() -> Pair:
    first, second = pair()
    for rank, enqueued in ((0, 7), (1, 6)):
        first.lines.append(
            f"[rank{rank}]:[E] [PG 0 Rank {rank}] Timeout at NCCL work: 7, last enqueued NCCL work: {enqueued}, last "
            "completed NCCL work: 6."
        )
    first.lines.append(
        "[rank0]:[E] [PG 0 Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE,"
        " NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
    )
    return [first, second]


def forced() -> Pair:
    return [process.says("NCCL_ALGO set by environment to Ring") for process in pair()]


def host_straggler() -> Pair:
    """Three ranks of a host; rank 2 calls 5 ms after the others, each time."""
    processes = [Process(rank, device=rank).init(size=3) for rank in range(3)]
    for call in range(25):
        for process in processes:
            process.calls(size=3)
            stamp = f"[2026-03-03 12:00:{call:02}.{5 * (process.rank == 2):03}] "
            process.lines[-1] = stamp + process.lines[-1]
    return processes


STORIES: dict[str, tuple[Callable[[], Pair], str, list[int]]] = {
    "socket_fallback": (sockets, "although NIC mlx5_0 was found", [0, 1]),
    "network_differs": (two_networks, "IB (1), Socket (1); the odd ones (rank 1), on host b, use Socket", [1]),
    "gdr_off": (no_gdr, "all 2 network connections", [0, 1]),
    "gdr_refused": (
        unconnected,
        "On 2 hosts, such as a (ranks 0\N{EN DASH}1), the network's plug-in does without",
        [0, 1],
    ),
    "plugin_failed": (
        fallen_back,
        "a protocol that worked.  Failing initialization: its nodes communicate over TCP sockets.",
        [0, 1],
    ),
    "rail_mismatch": (rails, "mlx5_0 to 1", []),
    "far_nic": (far, "at distance SYS from its GPU, although NIC 1 is at PIX", [0]),
    "nic_below_speed": (slow_link, "1 NIC of 100 Gbit/s in use, where others of the job run at 400", [1]),
    "shared_nic": (shared, "1 of 2 NICs", [0, 1, 2, 3]),
    "proxy_relay": (relayed, "1 of 3 connections", [0]),
    "p2p_disabled": (through_memory, "NCCL_P2P_DISABLE=1 is set", [0, 1]),
    "ring_across_numa": (across_numa, "4 times where 2 would do", [0, 1, 2, 3]),
    "few_channels": (few_channels, "4 channels for collectives; NCCL_MAX_NCHANNELS=4 is set", []),
    "nvlink_unused": (
        joined_by_nvlink,
        "2 connections between hosts that NVLink joins, such as a and b, run over the network",
        [0, 1],
    ),
    "nvls_lost": (no_nvls, "1 of 2 processes", [1]),
    "environment_differs": (environments, "NCCL_BUFFSIZE differs", [1]),
    "environment_missing": (
        one_host_unset,
        "Settings of 2 processes are not set for the 2 on host b (ranks 2\N{EN DASH}3): NCCL_IB_TC.",
        [2, 3],
    ),
    "version_differs": (versions, "2.26.2 (1), 2.27.5 (1)", []),
    "slow_init": (slow_init, "31.2 s, most of it in kernels", [0]),
    "init_incomplete": (one_missing, "2 of 3 ranks began the init of communicator 0, and none ended it;", [0, 1]),
    "warned": (balancing, "1 warning on host a (rank 0): NUMA auto balancing enabled", [0]),
    "ras_report": (asked_ras, "MISMATCH of communicator 0x78db921d1c117b4a: Communicator ranks have different", [7]),
    "late_communicator": (late, "2 communicator sides", [0, 1]),
    "cpu_affinity": (unbound, "On 2 hosts, such as a", [0, 1]),
    "completion_error": (broken_link, "12/129 (retry timeout", [0]),
    "failed_call": (broken_connection, "1 call failed on host b (rank 1): socketProgressOpt: Call to recv", [1]),
    "gave_up": (one_gpu, "NCCL gave up on host a: Duplicate GPU detected : rank 1 and rank 0", []),
    "failed_operation": (
        gave_up,
        "NCCL failed (rank 1): unhandled system error; last error: Call to",
        [1],
    ),
    "failed_request": (lost_request, "2 network requests failed on host b (rank 1): NET/OFI Request", [1]),
    "link_trouble": (flapping, "async event 1 time", [0]),
    "desynchronised": (out_of_step, "Call 1 of communicator 0 differs", [0]),
    "calls_differ": (one_behind, "most ranks of communicator 0 make 3 collectives, one makes 2 (rank 2)", [2]),
    "hang": (stuck, "rank 1 has not enqueued it", [1]),
    "odd_algorithm": (forced, "NCCL_ALGO=Ring overrides NCCL's choice", []),
    "late_enqueue": (host_straggler, "Rank 2 calls the collectives of communicator 0 5.0 ms later", [2]),
}
