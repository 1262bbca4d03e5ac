"""Each rank's chain of own work, arrivals and waits, drawn by hand."""

from tests.given import Trace, built, rows_of, store_of

JOINTS = "SELECT rank, position, arrival_ns, end_ns, awaited_position FROM graph.arrival ORDER BY rank, position"
WORK = """
SELECT position, part, phase, duration_ns FROM graph.work WHERE rank = ? AND phase IN ('compute', 'transfer', 'wait')
ORDER BY position, part, phase
"""
ISSUES = "SELECT code, count, first_at FROM meta.issue WHERE stage = 'graph'"


def test_a_rank_awaits_a_collective_where_nothing_else_runs() -> None:
    # rank 0   |compute 0–40|all-reduce 40––––––––90|compute 90–100|
    # rank 1   |compute 0––––––––––70|all-reduce –90|compute 90–100|
    early = Trace(0).step(1, 0, 100).kernel(0, 40).collective(40, 90).kernel(90, 100)
    late = Trace(1).step(1, 0, 100).kernel(0, 70).collective(70, 90).kernel(90, 100)

    store = built(store_of(early, late), "graph")

    assert rows_of(store, JOINTS) == [(0, 0, 40, 90, 0), (1, 0, 70, 90, 0)]
    assert rows_of(store, WORK, [0]) == [(0, "before_arrival", "compute", 40), (1, "before_arrival", "compute", 10)]


def test_a_rank_that_computes_on_awaits_nothing() -> None:
    # compute      |0–––––––––––––––––––––100|
    # all-reduce        |40––60|
    traces = [Trace(rank).step(1, 0, 100).kernel(0, 100).collective(40, 60) for rank in range(2)]

    store = built(store_of(*traces), "graph")

    assert rows_of(store, JOINTS) == [(0, 0, 40, 60, None), (1, 0, 40, 60, None)]
    assert rows_of(store, WORK, [0]) == [(0, "before_arrival", "compute", 40), (1, "before_arrival", "compute", 60)]


def test_work_after_an_arrival_and_before_the_wait_is_told_apart() -> None:
    # compute      |0––––––––50|        |80–100|
    # all-reduce        |20–––––––––––80|            exposed from 50 on
    traces = [Trace(rank).step(1, 0, 100).kernel(0, 50).collective(20, 80).kernel(80, 100) for rank in range(2)]

    store = built(store_of(*traces), "graph")

    assert rows_of(store, JOINTS) == [(0, 0, 20, 80, 0), (1, 0, 20, 80, 0)]
    assert rows_of(store, WORK, [0]) == [
        (0, "before_arrival", "compute", 20),
        (0, "before_wait", "compute", 30),
        (1, "before_arrival", "compute", 20),
    ]


def test_a_rank_too_late_to_be_blocked_has_the_wait_that_the_others_have() -> None:
    # ranks 0, 1   compute |0–––––50|            all-reduce |20–––––80|   blocked from 50 to 80
    # rank 2       compute |0––––––––––––85|     all-reduce |20–––––80|   never blocked, but the program is the same
    traces = [
        Trace(rank).step(1, 0, 100).kernel(0, until).collective(20, 80) for rank, until in enumerate([50, 50, 85])
    ]

    store = built(store_of(*traces), "graph")

    assert rows_of(store, "SELECT awaited_position FROM graph.arrival ORDER BY rank") == [(0,), (0,), (0,)]
    assert rows_of(store, WORK, [2]) == [
        (0, "before_arrival", "compute", 20),
        (0, "before_wait", "compute", 60),
        (1, "before_arrival", "compute", 5),
    ]


def test_of_two_collectives_awaited_together_the_later_end_counts() -> None:
    # stream A   |all-reduce 20–––––––80|
    # stream B      |all-gather 30––60|
    traces = [
        Trace(rank).step(1, 0, 100).kernel(0, 40).collective(20, 80).collective(30, 60, op="allgather")
        for rank in range(2)
    ]

    store = built(store_of(*traces), "graph")

    assert rows_of(store, JOINTS)[:2] == [(0, 0, 20, 80, None), (0, 1, 30, 60, 0)]


def test_a_collective_that_overtook_the_one_before_cannot_be_awaited_in_its_place() -> None:
    # issued A, B, C
    # stream 1   |A 5–8|                |B 50–60|
    # stream 2            |C 10–20|                    C is done before B, its predecessor, begins
    # compute                      |20–––50|
    traces = [
        Trace(rank)
        .step(1, 0, 100)
        .collective(5, 8, issue_ns=0)
        .collective(50, 60, issue_ns=2)
        .collective(10, 20, issue_ns=4)
        .kernel(20, 50)
        for rank in range(2)
    ]

    store = built(store_of(*traces), "graph")

    assert rows_of(store, JOINTS)[:3] == [(0, 0, 5, 8, 0), (0, 1, 50, 60, None), (0, 2, 50, 20, 1)]
    assert rows_of(store, WORK, [0]) == [(1, "before_arrival", "compute", 30), (1, "before_arrival", "transfer", 10)]


def test_an_iteration_without_collectives_is_one_stretch() -> None:
    store = built(store_of(Trace().step(1, 0, 50).kernel(0, 30).copy(30, 50)), "graph")

    assert rows_of(store, "SELECT position, part, phase, duration_ns FROM graph.work ORDER BY phase") == [
        (0, "before_arrival", "compute", 30),
        (0, "before_arrival", "copy", 20),
    ]


def test_an_iteration_whose_ranks_issue_different_collectives_is_left_out_and_counted() -> None:
    # step 1   ranks 0–3 all reduce; ranks 0 and 1 reduce once more among themselves
    # step 2   ranks 0–3 all reduce
    traces = []
    for rank in range(4):
        trace = Trace(rank).step(1, 0, 100).step(2, 100, 200)
        for start in (10, 110):
            trace.collective(start, start + 20, group="all", ranks=[0, 1, 2, 3])
        if rank < 2:
            trace.collective(50, 60, group="pair", ranks=[0, 1])
        traces.append(trace)

    store = built(store_of(*traces), "graph")

    assert rows_of(store, "SELECT DISTINCT iteration FROM graph.arrival") == [(2,)]
    assert rows_of(store, "SELECT DISTINCT iteration FROM graph.work") == [(2,)]
    assert rows_of(store, ISSUES) == [("iteration_irregular", 1, "iteration 1")]


def test_ranks_may_meet_in_different_groups_at_one_place() -> None:
    # pipeline of two pairs: ranks 0 and 1 reduce while ranks 2 and 3 do
    traces = []
    for rank in range(4):
        pair = [0, 1] if rank < 2 else [2, 3]
        all_ranks = {"group": "all", "ranks": [0, 1, 2, 3]}
        trace = Trace(rank).step(1, 0, 100).collective(10, 20, **all_ranks)  # type: ignore[arg-type]
        traces.append(trace.collective(30, 40 + rank // 2, group=str(pair), ranks=pair))

    store = built(store_of(*traces), "graph")

    assert rows_of(store, "SELECT rank, position, end_ns FROM graph.arrival WHERE position = 1 ORDER BY rank") == [
        (0, 1, 40),
        (1, 1, 40),
        (2, 1, 41),
        (3, 1, 41),
    ]
    assert rows_of(store, ISSUES) == []
