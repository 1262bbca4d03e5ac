"""Each rank's chain of own work, arrivals and waits, drawn by hand."""

import pytest

from tests.given import US, Trace, rows_of
from tests.stories import told
from traceforge.graph.positions import ChainedCall, common_positions

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

    store = told(early, late, stage="graph")

    assert rows_of(store, JOINTS) == [(0, 0, 40, 90, 0), (1, 0, 70, 90, 0)]
    assert rows_of(store, WORK, [0]) == [(0, "before_arrival", "compute", 40), (1, "before_arrival", "compute", 10)]


def test_receives_that_are_posted_ahead_contradict_no_order() -> None:
    # rank 0   |compute 0–––––––––––––100| sends A 100–110, then receives B, posted at 10: it met at 50
    # rank 1   |compute 0–––50| sends B 50–60, then receives A, posted at 10: it met at 100
    ranks = [0, 1]
    first, second = (Trace(rank).step(1, 0, 200) for rank in ranks)
    first.kernel(0, 100).exchange(100, 110, [("send", 1)], ranks=ranks, issue_ns=7)
    first.exchange(17, 60, [("recv", 1)], ranks=ranks, issue_ns=17).kernel(110, 150)
    second.kernel(0, 50).exchange(50, 60, [("send", 0)], ranks=ranks, issue_ns=7)
    second.exchange(17, 110, [("recv", 0)], ranks=ranks, issue_ns=17).kernel(110, 150)

    store = told(first, second, stage="graph")

    # then both ranks have B first
    assert rows_of(store, "SELECT rank, position, end_ns, is_regular FROM graph.arrival ORDER BY ALL") == [
        (0, 0, 60, True), (0, 1, 110, True), (1, 0, 60, True), (1, 1, 110, True),
    ]  # fmt: skip
    assert rows_of(store, ISSUES) == []


def test_replicas_whose_receives_are_posted_ahead_have_their_calls_at_the_same_places() -> None:
    # replica 0 as above: A meets at 100, B at 50; in replica 1 the first rank is early, so that A meets at 30
    traces = [Trace(rank).step(1, 0, 200) for rank in range(4)]
    for replica, ready in enumerate((100, 30)):
        first, second = traces[2 * replica : 2 * replica + 2]
        ranks, group = [2 * replica, 2 * replica + 1], f"pp{replica}"
        first.kernel(0, ready).exchange(ready, ready + 10, [("send", 1)], ranks=ranks, issue_ns=7, group=group)
        first.exchange(17, 60, [("recv", 1)], ranks=ranks, issue_ns=17, group=group).kernel(110, 150)
        second.kernel(0, 50).exchange(50, 60, [("send", 0)], ranks=ranks, issue_ns=7, group=group)
        second.exchange(17, ready + 10, [("recv", 0)], ranks=ranks, issue_ns=17, group=group).kernel(110, 150)
    for rank, trace in enumerate(traces):
        trace.collective(150, 160, group=f"dp{rank % 2}", ranks=[rank % 2, rank % 2 + 2])

    store = told(*traces, stage="graph")

    # then the order is that of both replicas' usual times: B first, at (50 + 50) / 2, then A, at (100 + 50) / 2
    sent = """
    SELECT a.rank, a.position FROM graph.arrival AS a
    JOIN timeline.message AS m USING (collective_id) WHERE a.rank = m.source_rank ORDER BY a.rank
    """
    assert rows_of(store, sent) == [(0, 1), (1, 0), (2, 1), (3, 0)]


def test_rounded_times_hide_no_wait() -> None:
    # compute      |0––40|                  |79–100|      begins 1 us before the end, as times are rounded
    # all-reduce         |40–––––––––––––––––80|
    traces = [
        Trace(rank).step(1, 0, 100 * US).kernel(0, 40 * US).collective(40 * US, 80 * US).kernel(79 * US, 100 * US)
        for rank in range(2)
    ]

    store = told(*traces, stage="graph")

    assert rows_of(store, "SELECT awaited_position FROM graph.arrival ORDER BY rank") == [(0,), (0,)]


def test_a_collective_that_seems_to_begin_before_the_end_it_awaits_begins_at_it() -> None:
    # compute      |0–––40|                      |120–200|
    # all-reduce          |40–––––––––––80|
    # another                          |79.999–120|        of another stream, begins 1 ns too early
    traces = [Trace(rank).step(1, 0, 200 * US).kernel(0, 40 * US) for rank in range(2)]
    for trace in traces:
        trace.collective(40 * US, 80 * US, issue_ns=1).collective(80 * US - 1, 120 * US, issue_ns=3)
        trace.events[-1] |= {"stream": 8, "track_id": 4}
        trace.kernel(120 * US, 200 * US)

    store = told(*traces, stage="graph")

    chain = [(0, 40 * US, 80 * US, 0), (1, 80 * US, 120 * US, 1)]
    assert rows_of(store, JOINTS) == [(rank, *link) for rank in range(2) for link in chain]


def test_a_rank_that_computes_on_awaits_nothing() -> None:
    # compute      |0–––––––––––––––––––––100|
    # all-reduce        |40––60|
    traces = [Trace(rank).step(1, 0, 100).kernel(0, 100).collective(40, 60) for rank in range(2)]

    store = told(*traces, stage="graph")

    assert rows_of(store, JOINTS) == [(0, 0, 40, 60, None), (1, 0, 40, 60, None)]
    assert rows_of(store, WORK, [0]) == [(0, "before_arrival", "compute", 40), (1, "before_arrival", "compute", 60)]


def test_work_after_an_arrival_and_before_the_wait_is_told_apart() -> None:
    # compute      |0––––––––50|        |80–100|
    # all-reduce        |20–––––––––––80|            exposed from 50 on
    traces = [Trace(rank).step(1, 0, 100).kernel(0, 50).collective(20, 80).kernel(80, 100) for rank in range(2)]

    store = told(*traces, stage="graph")

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

    store = told(*traces, stage="graph")

    assert rows_of(store, "SELECT awaited_position FROM graph.arrival ORDER BY rank") == [(0,), (0,), (0,)]
    assert rows_of(store, WORK, [2]) == [
        (0, "before_arrival", "compute", 20),
        (0, "before_wait", "compute", 60),
        (1, "before_arrival", "compute", 5),
    ]


def test_ranks_that_await_different_collectives_at_one_place_have_one_row_each() -> None:
    # rank 0   |A 20––––––80|      B 30–60 on another stream: the later end is A's
    # rank 1   |A 20––60|          B 30–––––80: the later end is B's
    traces = [
        Trace(rank).step(1, 0, 100).collective(20, ends[0]).collective(30, ends[1], op="allgather")
        for rank, ends in enumerate([(80, 60), (60, 80)])
    ]

    store = told(*traces, stage="graph")

    chain = "SELECT rank, position, awaited_position FROM graph.arrival ORDER BY rank, position"
    assert rows_of(store, chain) == [(0, 0, None), (0, 1, 0), (1, 0, None), (1, 1, 1)]


def test_of_two_collectives_awaited_together_the_later_end_counts() -> None:
    # stream A   |all-reduce 20–––––––80|
    # stream B      |all-gather 30––60|
    traces = [
        Trace(rank).step(1, 0, 100).kernel(0, 40).collective(20, 80).collective(30, 60, op="allgather")
        for rank in range(2)
    ]

    store = told(*traces, stage="graph")

    assert rows_of(store, JOINTS)[:2] == [(0, 0, 20, 80, None), (0, 1, 30, 60, 0)]


@pytest.mark.parametrize("iterations", [1, 2])
@pytest.mark.parametrize(("first_end_ns", "second_end_ns", "later"), [(80, 60, 0), (60, 80, 1)])
def test_of_two_ends_the_later_counts_on_ranks_that_meet_the_others_late(
    iterations: int, first_end_ns: int, second_end_ns: int, later: int
) -> None:
    # ranks 0, 1   |four all-reduces of the pair 0–8|   |A 20–80|
    # rank 2                                            |A 20–80|     A and B are its only ones, at positions 4 and 5
    #                                                     |B 30–60|   on another stream, on all ranks
    traces = []
    for rank in range(3):
        trace = Trace(rank)
        for number in range(iterations):
            at = 100 * number
            trace.step(number, at, at + 100)
            for start in range(at, at + 8, 2) if rank < 2 else []:
                trace.collective(start, start + 2, group="pair", ranks=[0, 1])
            trace.collective(at + 20, at + first_end_ns).collective(at + 30, at + second_end_ns, op="allgather")
        traces.append(trace)

    store = told(*traces, stage="graph")

    chain = "SELECT position, awaited_position FROM graph.arrival WHERE rank = 2 ORDER BY iteration, position"
    assert rows_of(store, chain) == [(4, None), (5, 4 + later)] * iterations


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

    store = told(*traces, stage="graph")

    assert rows_of(store, JOINTS)[:3] == [(0, 0, 5, 8, 0), (0, 1, 50, 60, None), (0, 2, 50, 20, 1)]
    assert rows_of(store, WORK, [0]) == [(1, "before_arrival", "compute", 30), (1, "before_arrival", "transfer", 10)]


def test_an_iteration_without_collectives_is_one_stretch() -> None:
    store = told(Trace().step(1, 0, 50).kernel(0, 30).copy(30, 50), stage="graph")

    assert rows_of(store, "SELECT position, part, phase, duration_ns FROM graph.work ORDER BY phase") == [
        (0, "before_arrival", "compute", 30),
        (0, "before_arrival", "copy", 20),
    ]


def test_an_iteration_in_which_a_rank_meets_nobody_is_not_regular() -> None:
    # ranks 0 and 1 reduce twice, rank 2 once in a group of its own that has no clock in common
    traces = [Trace(rank, host=f"node{rank // 2}").step(1, 0, 100) for rank in range(3)]
    for trace in traces[:2]:
        trace.collective(10, 20, group="pair", ranks=[0, 1]).collective(50, 60, group="pair", ranks=[0, 1])
    traces[2].collective(10, 20, group="own", ranks=[2])

    store = told(*traces, stage="graph")

    assert rows_of(store, "SELECT DISTINCT is_regular FROM graph.arrival") == [(False,)]


def test_an_iteration_in_which_a_member_is_missing_is_not_regular_and_counted() -> None:
    # step 1   ranks 0–3 all reduce; rank 0 reduces once more with rank 1, whose part is not there
    # step 2   ranks 0–3 all reduce
    traces = []
    for rank in range(4):
        trace = Trace(rank).step(1, 0, 100).step(2, 100, 200)
        for start in (10, 110):
            trace.collective(start, start + 20, group="all", ranks=[0, 1, 2, 3])
        if rank == 0:
            trace.collective(50, 60, group="pair", ranks=[0, 1])
        traces.append(trace)

    store = told(*traces, stage="graph")

    flags = [(1, False), (2, True)]
    assert rows_of(store, "SELECT DISTINCT iteration, is_regular FROM graph.arrival ORDER BY 1") == flags
    assert rows_of(store, "SELECT DISTINCT iteration, is_regular FROM graph.work ORDER BY 1") == flags
    assert rows_of(store, ISSUES) == [("iteration_irregular", 1, "iteration 1")]


class TestPipeline:
    """Stages that send to and receive from one another, each with a program of its own (1F1B, three stages)."""

    @staticmethod
    def _stages() -> list[Trace]:
        # stage 0   |F 0–20|send 20–25|                              |recv …–95|B 95–115|
        # stage 1       |recv …–25|F 25–45|send 45–50|  |recv …–85|B|send 90–95|
        # stage 2                       |recv …–50|F+B 50–80|send 80–85|
        pp: dict[str, object] = {"group": "pp", "ranks": [0, 1, 2]}
        stages = [Trace(rank, host="node0").step(1, 0, 120) for rank in range(3)]

        def transfer(sender: int, receiver: int, sent: int, waiting: int, end: int) -> None:
            stages[sender].collective(sent, end, op="send", group_rank=receiver, **pp)  # type: ignore[arg-type]
            stages[receiver].collective(waiting, end, op="recv", group_rank=sender, **pp)  # type: ignore[arg-type]

        stages[0].kernel(0, 20)
        transfer(0, 1, 20, 2, 25)
        stages[1].kernel(25, 45)
        transfer(1, 2, 45, 3, 50)
        stages[2].kernel(50, 80)
        transfer(2, 1, 80, 51, 85)
        stages[1].kernel(85, 90)
        transfer(1, 0, 90, 26, 95)
        stages[0].kernel(95, 115)
        return stages

    def test_a_collectives_position_follows_all_that_its_members_did_before(self) -> None:
        store = told(*self._stages(), stage="graph")

        positions = "SELECT rank, position, awaited_position FROM graph.arrival ORDER BY rank, position"
        assert rows_of(store, positions) == [
            (0, 0, 0), (0, 3, 3),
            (1, 0, 0), (1, 1, 1), (1, 2, 2), (1, 3, 3),
            (2, 1, 1), (2, 2, 2),
        ]  # fmt: skip

    def test_the_critical_path_runs_through_all_stages_and_back(self) -> None:
        store = told(*self._stages(), stage="graph")

        path = "SELECT rank, kind, start_ns, start_ns + duration_ns FROM graph.critical_path ORDER BY piece"
        assert rows_of(store, path) == [
            (0, "work", 0, 20), (1, "transfer", 20, 25), (1, "work", 25, 45), (2, "transfer", 45, 50),
            (2, "work", 50, 80), (1, "transfer", 80, 85), (1, "work", 85, 90), (0, "transfer", 90, 95),
            (0, "work", 95, 120),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("chains", "positions"),
    [
        ([[7, 8], [7, 8]], {7: 0, 8: 1}),
        ([[7, 9], [7, 8, 9], [8]], {7: 0, 8: 1, 9: 2}),
        # One rank issues 7 before 8, the other 8 before 7.
        ([[7, 8], [8, 7]], None),
        ([[], []], {}),
    ],
)
def test_positions_are_those_that_all_orders_allow(chains: list[list[int]], positions: dict[int, int] | None) -> None:
    assert common_positions([[ChainedCall((one,)) for one in chain] for chain in chains]) == positions


def test_meetings_of_one_call_come_in_any_order_and_leave_room_to_await_them() -> None:
    # rank 0 meets ranks 1 and 2 in one call, then rank 1 again; rank 1 met rank 2 before, and rank 2 meets 0 first
    both = ChainedCall((7, 8), free=1)
    chains = [[both, ChainedCall((9,))], [ChainedCall((6,)), ChainedCall((7,)), ChainedCall((9,))]]

    positions = common_positions([*chains, [ChainedCall((8,)), ChainedCall((6,))]])

    # 8 comes before 6, 6 before 7; rank 0 has position 3 to await the one while it awaits the other
    assert positions == {8: 0, 6: 1, 7: 2, 9: 4}


def test_neighbours_in_a_ring_meet_at_two_places_by_turns() -> None:
    # message n goes from rank n to rank n + 1 of four; each rank sends and receives in one call
    chains = [[ChainedCall((rank, (rank - 1) % 4), free=1)] for rank in range(4)]

    assert common_positions(chains) == {0: 0, 1: 1, 2: 0, 3: 1}


def test_a_batch_keeps_its_places_in_iterations_in_which_nobody_waits_for_it() -> None:
    # given two exchanges in a ring of three, which kernels hide in the second iteration; then a reduction
    traces = [Trace(rank) for rank in range(3)]
    for rank, trace in enumerate(traces):
        ring = [("send", (rank + 1) % 3), ("recv", (rank - 1) % 3)]
        for n, begin in enumerate((0, 1000 * US)):
            trace.step(n, begin, begin + 1000 * US).kernel(begin, begin + 100 * US)
            if n:
                trace.kernel(begin + 100 * US, begin + 800 * US)
            for at in (begin + 100 * US, begin + 300 * US):
                trace.exchange(at, at + 100 * US, ring, ranks=(0, 1, 2), group="ring")
            trace.collective(begin + 800 * US, begin + 900 * US)

    store = told(*traces, stage="graph")

    query = "SELECT position FROM graph.arrival WHERE rank = 0 AND iteration = ? ORDER BY position"
    first, second = (rows_of(store, query.replace("?", str(n))) for n in range(2))
    assert first == second
    assert len(first) == 5


def test_ranks_may_meet_in_different_groups_at_one_place() -> None:
    # pipeline of two pairs: ranks 0 and 1 reduce while ranks 2 and 3 do
    traces = []
    for rank in range(4):
        pair = [0, 1] if rank < 2 else [2, 3]
        all_ranks = {"group": "all", "ranks": [0, 1, 2, 3]}
        trace = Trace(rank).step(1, 0, 100).collective(10, 20, **all_ranks)  # type: ignore[arg-type]
        traces.append(trace.collective(30, 40 + rank // 2, group=str(pair), ranks=pair))

    store = told(*traces, stage="graph")

    assert rows_of(store, "SELECT rank, position, end_ns FROM graph.arrival WHERE position = 1 ORDER BY rank") == [
        (0, 1, 40),
        (1, 1, 40),
        (2, 1, 41),
        (3, 1, 41),
    ]
    assert rows_of(store, ISSUES) == []
