"""Who leads, from durations alone."""

import pytest

from tests.given import Trace, data_parallel_job, rows_of
from tests.stories import told

ALL = "SELECT iteration, stage, rank, increment_ns, lead_ns FROM attribute.frontier ORDER BY ALL"


@pytest.mark.parametrize("clock_ns", [(0, 0, 0), (0, 5_000_000, -70)])
def test_the_rank_with_most_work_of_its_own_leads_whatever_the_clocks_say(clock_ns: tuple[int, ...]) -> None:
    # given 100, 140 and 100 of compute before the only collective of each iteration
    with told(*data_parallel_job([[100, 140, 100]] * 3, clock_ns=clock_ns)) as store:
        assert rows_of(store, ALL) == [(iteration, 0, 1, 140, 40) for iteration in range(3)]


def test_increments_add_up_to_the_last_frontier() -> None:
    # given two collectives: rank 0 works 100 and 50, rank 1 works 60 and 120
    #   rank 0   |100·······|t|50···|w|t|
    #   rank 1   |60····|w···|t|120·····|t|
    zero, one = Trace(0), Trace(1)
    zero.step(0, 0, 250).kernel(0, 100).collective(100, 110).kernel(110, 160).collective(160, 240)
    one.step(0, 0, 250).kernel(0, 60).collective(60, 110).kernel(110, 230).collective(230, 240)

    with told(zero, one) as store:
        # then rank 0 leads at first, by 40; in the end rank 1 has worked 180, of which 80 beyond the frontier
        assert rows_of(store, ALL) == [(0, 0, 0, 100, 40), (0, 1, 1, 80, 30)]


def test_iterations_with_different_numbers_of_collectives_are_absent() -> None:
    zero = Trace(0).step(0, 0, 100).kernel(0, 20).collective(20, 40).kernel(40, 50).collective(50, 60)
    one = Trace(1).step(0, 0, 100).kernel(0, 20).collective(20, 40)

    with told(zero, one) as store:
        assert rows_of(store, ALL) == []


def test_where_ranks_cannot_be_compared_the_verdict_says_who_leads_and_how_it_knows() -> None:
    # given ranks that never meet, on two hosts: rank 1 works 140 before its own collectives, rank 0 works 100
    traces = [
        Trace(rank, host=f"node{rank}", clock_ns=rank * 7_000_000, groups=[(f"own{rank}", "", [rank])])
        for rank in range(2)
    ]
    for step in range(4):
        for rank, trace in enumerate(traces):
            begin, work = 1_000 * step, 100 + 40 * rank
            trace.step(step, begin, begin + 900).kernel(begin, begin + work)
            trace.collective(begin + work, begin + work + 20, group=f"own{rank}", ranks=[rank])

    with told(*traces) as store:
        ((kind, explanation),) = rows_of(store, "SELECT kind, explanation FROM attribute.verdict")

    assert kind == "cannot_be_known"
    assert str(explanation).startswith("From durations alone, without a common clock: rank 1 has most work of its own")
