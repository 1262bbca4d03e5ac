"""A log may hold several jobs: what differs between these is no fault of one of them."""

import pytest

from tests.fabric.logs import Process, fabric_of

FOUND = "SELECT code, summary FROM fabric.finding ORDER BY code"


def job(setting: str, *, comm_hash: str, first: int = 0) -> list[Process]:
    """Two ranks, with processes of their own, that say one thing before they meet."""
    return [
        Process(first + rank, device=rank).says(setting).init(rank, comm_hash=comm_hash, comm=0xA0 + first)
        for rank in range(2)
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("NCCL_BUFFSIZE set by environment to 8388608.", "NCCL_BUFFSIZE set by environment to 1048576."),
        ("NCCL version 2.27.5+cuda12.9", "NCCL version 2.26.2+cuda12.6"),
    ],
)
def test_two_jobs_of_one_log_may_differ(one: str, other: str) -> None:
    processes = [*job(one, comm_hash="0x1"), *job(other, comm_hash="0x2", first=2)]

    with fabric_of(processes, asked="fabric.finding fabric.job") as store:
        assert store.query("SELECT process, job FROM fabric.job ORDER BY process").rows() == [
            (0, 0),
            (1, 0),
            (2, 1),
            (3, 1),
        ]
        assert store.query(FOUND).rows() == []


def test_groups_that_meet_in_a_third_are_one_job() -> None:
    # given two groups of two that no communicator spans, but one with a rank of each
    processes = [*job("Bootstrap: Using eth0:10.0.0.1<0>", comm_hash="0x1"), *job("x", comm_hash="0x2", first=2)]
    for rank, process in enumerate(processes[1:3]):
        process.init(rank, comm_hash="0x3", comm=0xF0)
    for rank, process in enumerate(processes):
        process.says(f"NCCL_BUFFSIZE set by environment to {8 if rank == 3 else 4}.")

    with fabric_of(processes, asked="fabric.finding") as store:
        ((code, summary),) = store.query(FOUND).rows()

    assert code == "environment_differs"
    assert "4 (3), 8 (1)" in summary


def test_how_much_ranks_print_is_no_matter() -> None:
    first, second = job("Bootstrap: Using eth0:10.0.0.1<0>", comm_hash="0x1")
    first.says("NCCL_DEBUG set by environment to TRACE")
    second.says("NCCL_DEBUG set by environment to INFO")

    with fabric_of([first, second], asked="fabric.finding") as store:
        assert store.query(FOUND).rows() == []
