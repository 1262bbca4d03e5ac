"""Logs of small jobs that no single rule is for: healthy ones, and such in which rules meet."""

from tests.fabric.finding_stories import Pair, broken_link, environments, pair, sockets


def healthy() -> Pair:
    return [process.calls() for process in pair()]


def only_sockets() -> Pair:
    processes = sockets()
    for process in processes:
        process.lines = [line.replace("NET/IB : Using [0]mlx5_0:1/IB [RO]", "NET/Socket : Using [0]eth0:10.0.0.1<0>")
                         for line in process.lines]  # fmt: skip
    return processes


def braces() -> Pair:
    first, second = pair()
    first.says("NCCL_BUFFSIZE set by environment to {subject}<b>")
    return [first, second.says("NCCL_BUFFSIZE set by environment to 1")]


def problem_and_notice() -> Pair:
    """A problem that one line shows, and a notice that two lines show."""
    return [process.says("NCCL_ALGO set by environment to Ring") for process in environments()]


def efa_without_gdr() -> Pair:
    """A network that has no GPU Direct RDMA, whose plug-in therefore sets a protocol."""
    return [
        process.says(
            "NET/OFI NIC group 0 device #0 0000:31:00.0",
            "NET/OFI Could not disable CUDA API usage for HMEM, disabling GDR",
            "NET/OFI Adding NCCL_PROTO=simple to environment",
            "NCCL_PROTO set by environment to simple",
        )
        for process in pair("NET/Libfabric/{}")
    ]


def error_and_setting() -> Pair:
    """An error that one line shows, and a setting that two lines show."""
    text = (
        "ncclTopoGetCpuAffinity: Affinity for GPU 0 is empty, ignoring. (GPU affinity = 56-111 ; CPU affinity = 0-9)."
    )
    return [process.says(text) for process in broken_link()]
