"""Timeline and logs of one job are joined: each collective learns how NCCL carried it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fabric.logs import Process, add_logs
from tests.given import Trace, built, data_parallel_job, rows_of, store_of
from traceforge.fabric.communicator_match import Call, CandidateMatch, assigned, best_fit

CHOICE = "AllReduce: 4000 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..7}"


def test_a_collective_learns_algorithm_path_and_nics_from_the_log() -> None:
    # given two ranks that reduce 4,000 bytes in each of three iterations, and the log of each
    store = store_of(*data_parallel_job([[100, 100]] * 3))
    processes = [Process(rank, host="ab"[rank]).init() for rank in range(2)]
    for process in processes:
        process.says("NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>")
        process.sends(1 - process.rank, "NET/IB/0/GDRDMA").receives(1 - process.rank, "NET/IB/0/GDRDMA")
        for _ in range(5):
            process.calls(elements=1_000)
            if process.rank == 0:
                process.says(CHOICE)
    add_logs(store, processes)

    with built(store, "fabric") as joined:
        rows = rows_of(
            joined,
            "SELECT algorithm, protocol, channel_count, choice_share, path_class, nics, score FROM fabric.collective",
        )

    assert rows == [("ring", "simple", 8, 1.0, "network_gdr", ["mlx5_0"], 1.0)] * 3


def test_groups_of_the_same_ranks_are_told_apart_by_their_operations() -> None:
    # given two groups of both ranks: one reduces 4,000 bytes, the other gathers
    gather = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    groups = (("0", "default_pg", [0, 1]), ("1", "dp", [0, 1]))
    traces = [Trace(rank, groups=groups).step(0, 0, 1_000) for rank in range(2)]
    for trace in traces:
        for turn in range(3):
            trace.collective(100 + 200 * turn, 110 + 200 * turn, group="0", ranks=[0, 1])
            trace.collective(200 + 200 * turn, 210 + 200 * turn, op="allgather", kernel=gather, group="1", ranks=[0, 1])
    store = store_of(*traces)
    processes = [Process(rank).init(comm=0xA0, comm_hash="0x1").init(comm=0xB0, comm_hash="0x2") for rank in range(2)]
    for process in processes:
        for _ in range(3):
            process.calls("AllReduce", 1_000, comm=0xB0).calls("AllGather", 500, comm=0xA0)
    add_logs(store, processes)

    with built(store, "fabric") as joined:
        rows = rows_of(
            joined,
            "SELECT t.name, k.comm_hash, m.score, m.method, m.is_ambiguous FROM fabric.communicator_match AS m"
            " JOIN timeline.communicator AS t"
            " ON t.run_id = m.run_id AND t.communicator_id = m.timeline_communicator_id"
            " JOIN fabric.communicator AS k ON k.run_id = m.run_id AND k.communicator_id = m.communicator_id"
            " ORDER BY ALL",
        )

    assert [(name, comm_hash) for name, comm_hash, *_ in rows] == [("0", "0x2"), ("1", "0x1")]
    assert all(method == "sequence" and not ambiguous for *_, method, ambiguous in rows)


def test_without_logged_calls_the_ranks_alone_decide_and_the_score_says_so() -> None:
    store = store_of(*data_parallel_job([[100, 100]] * 3))
    add_logs(store, [Process(rank).init() for rank in range(2)])

    with built(store, "fabric") as joined:
        rows = rows_of(joined, "SELECT score, method, first_sequence FROM fabric.communicator_match")

    assert rows == [(1.0, "ranks", None)]


def test_logs_of_other_ranks_are_not_matched() -> None:
    store = store_of(*data_parallel_job([[100, 100]] * 3))
    add_logs(store, [Process(rank).init(size=4) for rank in range(4)])

    with built(store, "fabric") as joined:
        assert rows_of(joined, "FROM fabric.communicator_match") == []
        assert rows_of(joined, "FROM fabric.collective") == []


def test_the_best_candidates_are_matched_and_each_side_once() -> None:
    # given communicator 0, which fits group 5 best and 6 a little, and communicator 1, which fits 6 too badly
    candidates = [
        CandidateMatch(0, 5, 0.9, "sequence", 3),
        CandidateMatch(0, 6, 0.6, "sequence", 3),
        CandidateMatch(1, 6, 0.49, "sequence", None),
    ]

    assert list(assigned(candidates)) == [(0, 5, 0.9, "sequence", 3, False)]


def test_a_match_is_ambiguous_where_another_communicator_fits_as_well() -> None:
    candidates = [CandidateMatch(logged, 5, 0.9, "sequence", 3) for logged in (0, 1)]

    assert list(assigned(candidates)) == [(0, 5, 0.9, "sequence", 3, True)]


calls = st.lists(st.tuples(st.sampled_from(["all_reduce", "all_gather"]), st.integers(1, 3)), min_size=1, max_size=40)


@settings(deadline=None)
@given(before=calls, window=calls, after=calls)
def test_a_window_is_found_wherever_it_lies(before: list[Call], window: list[Call], after: list[Call]) -> None:
    fit = best_fit(window, [*before, *window, *after])

    assert fit.score == 1.0
    assert fit.first in (None, len(before)) or [*before, *window, *after][fit.first : fit.first + len(window)] == window


@settings(deadline=None)
@given(window=calls, sequence=calls)
def test_a_fit_is_a_share(window: list[Call], sequence: list[Call]) -> None:
    fit = best_fit(window, sequence)

    assert 0 <= fit.score <= 1


def test_a_place_that_recurs_is_not_named() -> None:
    assert best_fit([("all_reduce", 1)], [("all_reduce", 1)] * 3).first is None
    assert best_fit([("all_reduce", 1)], [("all_gather", 1), ("all_reduce", 1)]).first == pytest.approx(1)
