"""Pointers of processes become communicators, and ranks in them ranks in the job."""

import pytest

from tests.fabric.logs import Process, fabric_of


def test_two_processes_with_one_hash_are_one_communicator_over_files_too() -> None:
    # given two processes, each with a log of its own and another pointer
    first = Process(0).init(comm=0xA0)
    second = Process(1, host="b").init(comm=0xB0)

    with fabric_of([first], [second], asked="fabric.communicator") as store:
        rows = store.query("SELECT rank_count, member_count, is_complete, ranks FROM fabric.communicator").rows()

    assert rows == [(2, 2, True, [0, 1])]


def test_a_communicator_with_a_missing_log_is_incomplete_and_names_no_ranks() -> None:
    with fabric_of([Process(0).init(size=2)], asked="fabric.communicator") as store:
        rows = store.query("SELECT member_count, is_complete, ranks, node_count FROM fabric.communicator").rows()

    assert rows == [(1, False, None, None)]


def test_ranks_in_the_job_are_those_of_the_communicator_that_spans_it() -> None:
    # given a world of four and two pairs, one on each host
    processes = [
        Process(rank, host="ab"[rank // 2], device=rank % 2).init(size=4, comm_hash="0x1") for rank in range(4)
    ]
    for process in processes:
        process.init(process.rank % 2, 2, comm=0xC0, comm_hash=f"0x{2 + process.rank // 2}")

    with fabric_of(processes, asked="fabric.communicator fabric.member") as store:
        ranks = store.query("SELECT ranks FROM fabric.communicator ORDER BY communicator_id")["ranks"].to_list()
        origin = store.query("SELECT DISTINCT global_rank_origin FROM fabric.member")["global_rank_origin"].to_list()

    assert ranks == [[0, 1, 2, 3], [0, 1], [2, 3]]
    assert origin == ["communicator"]


def test_the_launchers_rank_is_taken_where_no_communicator_spans_the_job() -> None:
    processes = [
        Process(rank, prefix=f"[1,{7 - rank}]<stdout>:").init(rank % 2, 2, comm_hash="0x1") for rank in range(2)
    ]

    with fabric_of(processes, asked="fabric.member") as store:
        rows = store.query("SELECT rank, global_rank, global_rank_origin FROM fabric.member ORDER BY rank").rows()

    assert rows == [(0, 7, "launcher"), (1, 6, "launcher")]


def test_without_hashes_pairs_on_hosts_are_told_apart_by_place() -> None:
    # given NCCL before 2.18: a world, then a pair on each of two hosts
    processes = [Process(rank, host="ab"[rank // 2], device=rank % 2).init(size=4, comm_hash=None) for rank in range(4)]
    for process in processes:
        process.init(process.rank % 2, 2, comm=0xC0, comm_hash=None)

    with fabric_of(processes, asked="fabric.communicator") as store:
        rows = store.query("SELECT ranks, identity FROM fabric.communicator ORDER BY communicator_id").rows()

    assert rows == [([0, 1, 2, 3], "inferred"), ([0, 1], "inferred"), ([2, 3], "inferred")]


def test_without_hashes_groups_across_hosts_are_told_apart_by_gpu() -> None:
    processes = [Process(rank, host="ab"[rank // 2], device=rank % 2).init(size=4, comm_hash=None) for rank in range(4)]
    for process in processes:
        process.init(process.rank // 2, 2, comm=0xC0, comm_hash=None)

    with fabric_of(processes, asked="fabric.communicator") as store:
        ranks = store.query("SELECT ranks FROM fabric.communicator WHERE rank_count = 2 ORDER BY ALL")[
            "ranks"
        ].to_list()

    assert ranks == [[0, 2], [1, 3]]


def test_calls_are_counted_by_communicator_and_not_by_op_count() -> None:
    processes = [Process(rank).init().calls().calls("Broadcast").calls("Send").calls() for rank in range(2)]

    with fabric_of(processes, asked="fabric.operation") as store:
        rows = store.query("SELECT op, sequence FROM fabric.operation WHERE rank = 1 ORDER BY line").rows()

    assert rows == [("all_reduce", 0), ("broadcast", 1), ("send", 0), ("all_reduce", 2)]


def torn(rank: int, *, size: int = 4) -> Process:
    """A rank whose last line of init lost its end to another rank's."""
    line = f"ncclCommInitRankConfig comm 0xa{rank} rank {rank} nranks {size} cudaDev {rank} nvmlDev {rank} busId c"
    return Process(rank, device=rank).says(line + "other:1:1 [0] NCCL INFO Connected all trees")


VACANT = {
    "the ranks that one lacks": ([0, 1], [2, 3], [(4, "inferred")]),
    "a rank that it has": ([0, 1], [1, 2], [(2, "hash"), (2, "alone")]),
    "no communicator with a hash": ([], [0, 1, 2, 3], [(4, "inferred")]),
}


@pytest.mark.parametrize("case", VACANT)
def test_a_rank_without_a_hash_belongs_where_it_is_missing(case: str) -> None:
    whole, rest, expected = VACANT[case]
    processes = [Process(rank, device=rank).init(size=4, comm_hash="0xd3") for rank in whole]
    others = [torn(rank) for rank in rest]
    for other in others[: len(set(whole) & set(rest))]:
        other.rank += 10  # another process
        other.lines[0] = other.lines[0].replace(":1001:1001", ":1011:1011")

    with fabric_of(processes + others, asked="fabric.communicator") as store:
        rows = store.query("SELECT member_count, identity FROM fabric.communicator ORDER BY communicator_id").rows()

    assert rows == expected


def test_without_a_hash_one_of_two_communicators_of_a_size_is_not_chosen() -> None:
    processes = [Process(rank, device=rank).init(size=4, comm_hash=f"0xd{rank}") for rank in range(2)]

    with fabric_of([*processes, torn(2)], asked="fabric.communicator") as store:
        rows = store.query("SELECT member_count FROM fabric.communicator").rows()

    assert rows == [(1,), (1,), (1,)]
