"""The chain that set the run's length."""

from collections.abc import Callable
from pathlib import Path

from tests.given import Trace, data_parallel_job, rows_of
from tests.stories import told
from traceforge.graph.critical_path import Beginning, Chains, CollectiveEvent, Piece, critical_path
from traceforge.store.database import Store


def test_the_path_leads_from_the_end_over_the_transfer_to_the_rank_that_came_last() -> None:
    # rank 0  work 0-4 ┆ waits ······ ┆ transfer 7-9 ┆ work 9-12
    # rank 1  work 0 ─────────── 7    ┆ transfer 7-9 ┆ work 9-10
    chains = Chains(
        windows={0: [(3, 0, 12)], 1: [(3, 0, 10)]},
        events={
            (3, 0): [CollectiveEvent(arrival_ns=4, awaited=5, awaited_end_ns=9, work_ns=0)],
            (3, 1): [CollectiveEvent(arrival_ns=7, awaited=5, awaited_end_ns=9, work_ns=0)],
        },
        last={5: Beginning(7, 3, 1, 0, None)},
    )

    assert critical_path(chains) == [
        Piece(3, 1, "work", None, 0, 7),
        Piece(3, 0, "transfer", 5, 7, 9),
        Piece(3, 0, "work", None, 9, 12),
    ]


def test_a_rank_that_was_not_blocked_keeps_the_path() -> None:
    # rank 0  work 0-2, arrives; works on 2-8 while the collective ends at 5; work 8-9
    # rank 1  work 0-3, arrives last; its end 6 comes earlier
    chains = Chains(
        windows={0: [(0, 0, 9)], 1: [(0, 0, 6)]},
        events={
            (0, 0): [CollectiveEvent(arrival_ns=2, awaited=1, awaited_end_ns=5, work_ns=6)],
            (0, 1): [CollectiveEvent(arrival_ns=3, awaited=1, awaited_end_ns=5, work_ns=0)],
        },
        last={1: Beginning(3, 0, 1, 0, None)},
    )

    assert {piece.rank for piece in critical_path(chains)} == {0}
    assert sum(piece.end_ns - piece.start_ns for piece in critical_path(chains)) == 9


def test_ranks_may_number_the_iteration_of_a_collective_differently() -> None:
    # rank 0, step 3  work 0-4 ┆ waits ······ ┆ transfer 7-9 ┆ work 9-12
    # rank 1, whole window as step 0:  work 0 ─ 7 ┆ transfer 7-9
    chains = Chains(
        windows={0: [(3, 0, 12)], 1: [(0, 0, 9)]},
        events={
            (3, 0): [CollectiveEvent(arrival_ns=4, awaited=5, awaited_end_ns=9, work_ns=0)],
            (0, 1): [CollectiveEvent(arrival_ns=7, awaited=5, awaited_end_ns=9, work_ns=0)],
        },
        last={5: Beginning(7, 0, 1, 0, None)},
    )

    assert critical_path(chains)[0] == Piece(0, 1, "work", None, 0, 7)


def test_an_iteration_that_is_not_in_the_graph_is_unknown_and_pauses_are_kept() -> None:
    # rank 0  unknown 0-5 ┆ pause 5-6 ┆ work 6-10;  rank 1 began at -2, so the run did too
    chains = Chains(windows={0: [(0, 0, 5), (1, 6, 10)], 1: [(0, -2, 4)]}, events={(1, 0): []}, last={})

    assert critical_path(chains) == [
        Piece(0, 0, "pause", None, -2, 0),
        Piece(0, 0, "unknown", None, 0, 5),
        Piece(0, 0, "pause", None, 5, 6),
        Piece(1, 0, "work", None, 6, 10),
    ]


def test_a_run_without_windows_has_no_path() -> None:
    assert critical_path(Chains({}, {}, {})) == []


def test_the_path_of_a_recorded_run_is_unbroken_and_as_long_as_the_run(sample_database: Callable[..., Path]) -> None:
    with Store(sample_database("tp2dp2"), read_only=True) as store:
        pieces = store.query("SELECT start_ns, duration_ns FROM graph.critical_path ORDER BY piece").rows()
        first, last = store.query("SELECT MIN(start_ns), MAX(end_ns) FROM timeline.window").row(0)

    starts = [start for start, _ in pieces]
    ends = [start + duration for start, duration in pieces]
    assert (starts[0], ends[-1]) == (first, last)
    assert ends[:-1] == starts[1:]


def test_the_path_is_divided_by_rank_and_cause() -> None:
    # rank 0   |compute 0–40|wait…          |transfer 70–80|load_batch 80–100|compute 100–120|
    # rank 1   |cudaMalloc 0–20|compute 20–70|transfer 70–80|compute 80–90|
    first = Trace(0).step(1, 0, 120).kernel(0, 40).collective(40, 80).kernel(100, 120, launch_ns=99)
    first.host_work("load_batch", 80, 99, "user_annotation")
    second = Trace(1).step(1, 0, 90).kernel(20, 70, launch_ns=19).collective(70, 80).kernel(80, 90)
    second.host_work("cudaMalloc", 0, 19, "cuda_runtime")

    store = told(first, second, stage="graph")

    shares = "SELECT rank, cause, duration_ns FROM graph.critical_path_share ORDER BY rank, cause"
    assert rows_of(store, shares) == [
        (0, "compute", 20),
        (0, "input", 19),
        (0, "launch", 1),
        (0, "transfer", 10),
        (1, "allocator", 19),
        (1, "compute", 50),
        (1, "launch", 1),
    ]


def test_a_rank_of_which_no_iteration_is_in_the_graph_does_not_end_the_analysis() -> None:
    # given three ranks, of which the second marks no steps and ends a call earlier
    traces = data_parallel_job([[60, 40, 50]] * 8)
    kept = [one for one in traces[1].events if not str(one["name"]).startswith("ProfilerStep")]
    last = max(int(str(one["event_id"])) for one in kept if one["name"] == "record_param_comms")
    traces[1].events = [one for one in kept if int(str(one["event_id"])) < last]
    traces[1].collectives = [one for one in traces[1].collectives if one["event_id"] != last]

    store = told(*traces, stage="graph")

    assert rows_of(store, "SELECT DISTINCT rank FROM graph.work ORDER BY rank") == [(0,), (2,)]


def test_shares_of_the_path_add_up_to_the_whole() -> None:
    traces = data_parallel_job([[60, 40, 50], [30, 70, 65], [20, 20, 90]])

    store = told(*traces, stage="graph")

    whole = "SELECT SUM(share), SUM(duration_ns), (SELECT MAX(end_ns) - MIN(start_ns) FROM timeline.window) FROM"
    ((share, parts_ns, run_ns),) = rows_of(store, f"{whole} graph.critical_path_share")
    assert abs(float(str(share)) - 1) < 1e-12
    assert parts_ns == run_ns
