"""Collectives that end between two kernels by chance: nobody waited for them."""

import pytest

from tests.given import US, Trace, built, rows_of, store_of
from traceforge.store.database import Store

RANKS = 4
ITERATIONS = 6
STEP = 300 * US
WAITED = """
SELECT iteration, rank, position, awaited_position FROM graph.arrival
WHERE awaited_position IS NOT NULL AND awaited_position <> 1
"""


def fetching(gap_us: int) -> Store:
    """A gather beside compute, which in one iteration ends on rank 2 between two kernels, and a reduction at the end.

    compute      |0–––––––––100|101–––––––––200|          on rank 2 in iteration 3  |0–––100|100 + gap–––200|
    gather            |50–––90|                                                         |50––––100 + gap|
    reduce                                     |200––230|
    """
    traces = [Trace(rank) for rank in range(RANKS)]
    for number in range(ITERATIONS):
        start = number * STEP
        for rank, trace in enumerate(traces):
            is_meant = rank == 2 and number == 3
            second, gathered = (100 + gap_us, 100 + gap_us) if is_meant else (101, 90)
            trace.step(number, start, start + 230 * US).kernel(start, start + 100 * US)
            trace.collective(start + 50 * US, start + gathered * US, op="_allgather_base", issue_ns=start + 2 * US)
            trace.kernel(start + second * US, start + 200 * US, launch_ns=start + 4 * US)
            trace.collective(start + 200 * US, start + 230 * US, issue_ns=start + 6 * US)
    return built(store_of(*traces), "timeline", "graph")


@pytest.mark.parametrize(
    ("gap_us", "waited"),
    [
        pytest.param(2, [], id="a gap as between any two kernels"),
        pytest.param(40, [(3, 2, 0, 0)], id="a device that stood still for it"),
    ],
)
def test_who_waits_for_what_few_wait_for_stood_still_for_it(gap_us: int, waited: list[tuple[int, ...]]) -> None:
    assert rows_of(fetching(gap_us), WAITED) == waited
