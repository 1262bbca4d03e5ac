"""GPUs that talk through host memory are a problem where they could do otherwise."""

import pytest

from tests.fabric.logs import Process, fabric_of

# By rank, the way to the next one of the ring on one host.
RINGS = {
    "two pairs joined by bridges": (["P2P/CUMEM", "SHM/direct/direct", "P2P/CUMEM", "SHM/direct/direct"], "notice"),
    "one broken pair of four": (["P2P/CUMEM", "P2P/CUMEM", "P2P/CUMEM", "SHM/direct/direct"], "problem"),
    "one GPU apart": (["P2P/CUMEM", "SHM/direct/direct", "SHM/direct/direct"], "problem"),
    "none": (["SHM/direct/direct"] * 4, "notice"),
}


@pytest.mark.parametrize("ring", RINGS)
def test_groups_without_a_direct_path_between_them_are_as_good_as_it_gets(ring: str) -> None:
    ways, severity = RINGS[ring]
    size = len(ways)
    processes = [Process(rank, device=rank).init(size=size) for rank in range(size)]
    for process, way in zip(processes, ways, strict=True):
        process.sends((process.rank + 1) % size, way)

    with fabric_of(processes) as store:
        rows = store.query("SELECT code, severity FROM fabric.finding").rows()

    assert rows == [("p2p_disabled", severity)]


def test_a_host_on_which_nobody_talks_directly_stands_out() -> None:
    processes = [Process(rank, host="ab"[rank // 2], device=rank % 2).init(size=4) for rank in range(4)]
    for rank, way in enumerate(("P2P/CUMEM", "NET/IB/0/GDRDMA", "SHM/direct/direct", "NET/IB/0/GDRDMA")):
        processes[rank].sends((rank + 1) % 4, way)

    with fabric_of(processes) as store:
        rows = store.query("SELECT code, severity FROM fabric.finding").rows()

    assert rows == [("p2p_disabled", "problem")]


def test_where_nvlink_joins_the_devices_host_memory_is_a_problem() -> None:
    # given two devices of a host that talk through its memory although NCCL found switches of NVLink
    processes = [Process(rank, device=rank).init() for rank in range(2)]
    for process in processes:
        process.says(f"NVLS multicast support is available on dev {process.rank}")
        process.sends(1 - process.rank, "SHM/direct/direct")

    with fabric_of(processes) as store:
        rows = store.query("SELECT code, severity, summary FROM fabric.finding").rows()

    ((code, severity, summary),) = rows
    assert (code, severity) == ("p2p_disabled", "problem")
    assert summary.endswith("pass through host memory (ranks 0\N{EN DASH}1), although NVLink joins the GPUs.")


def test_what_cuda_does_not_let_is_a_notice_that_says_so() -> None:
    # given NCCL 2.7, whose init fails before a line states how many ranks there are
    processes = [Process(rank, device=rank) for rank in range(2)]
    for process in processes:
        other = 1 - process.rank
        process.says(f"Trees [0] {other}/-1/-1->{process.rank}->-1|-1->{process.rank}->{other}/-1/-1")
        process.says(f"Could not enable P2P between dev {process.rank}(=3d000) and dev {other}(=1a000)")
        process.says(f"Channel 00 : {process.rank}[3d000] -> {other}[1a000] via direct shared memory")

    with fabric_of(processes) as store:
        ((code, severity, summary),) = store.query("SELECT code, severity, summary FROM fabric.finding").rows()

    assert (code, severity) == ("p2p_disabled", "notice")
    assert summary.endswith("; NCCL says: Could not enable P2P between dev 0(=3d000) and dev 1(=1a000).")
