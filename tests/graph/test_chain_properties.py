"""Chains of ranks that meet in changing groups, as stages of pipelines do: their positions have holes."""

from collections import defaultdict
from itertools import pairwise

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.given import Trace, rows_of, store_of_runs
from traceforge.graph.positions import ChainedCall, common_positions
from traceforge.store.database import Store
from traceforge.store.stage import build_stage

RANKS = 3
GROUPS = st.sets(st.integers(0, RANKS - 1), min_size=1).map(sorted)

ARRIVALS = """
SELECT a.rank, a.iteration, a.position, a.arrival_ns, a.end_ns, a.awaited_position, w.end_ns AS window_end_ns
FROM graph.arrival AS a JOIN timeline.window AS w USING (run_id, iteration, rank)
WHERE a.run_id = ? AND NOT a.is_regular
ORDER BY a.rank, a.iteration, a.position
"""
EXPOSED = """
SELECT rank, start_ns, start_ns + duration_ns FROM timeline.segment
WHERE run_id = ? AND phase IN ('transfer', 'wait')
"""


@given(st.lists(GROUPS, max_size=8))
def test_a_position_is_one_more_than_the_last_of_any_member_before(groups: list[list[int]]) -> None:
    chains = [[number for number, group in enumerate(groups) if rank in group] for rank in range(RANKS)]

    positions = common_positions([[ChainedCall((one,)) for one in chain] for chain in chains])

    assert positions is not None
    before = defaultdict(lambda: {-1})
    for chain in chains:
        for first, second in pairwise(chain):
            before[second].add(positions[first])
    assert positions == {number: max(before[number]) + 1 for number in range(len(groups))}


@st.composite
def pipelines(draw: st.DrawFn) -> list[Trace]:
    """Two iterations in which ranks meet in groups of any members, and collectives overlap in any way."""
    traces = [Trace(rank) for rank in range(RANKS)]
    for iteration in range(2):
        base = iteration * 200
        for trace in traces:
            trace.step(iteration, base, base + 200)
        for number, group in enumerate(draw(st.lists(GROUPS, min_size=2, max_size=7))):
            for rank in group:
                start = base + draw(st.integers(0, 150))
                end = start + draw(st.integers(1, 60))
                traces[rank].collective(start, end, issue_ns=base + 2 * number, group=str(group), ranks=group)
    return traces


def awaited_of(store: Store, run_id: int) -> list[object]:
    """Awaited positions as the definition says: of the ends after an arrival and before the next, the last exposed."""
    exposed = rows_of(store, EXPOSED, [run_id])
    chains = defaultdict(list)
    for row in store.query(ARRIVALS, [run_id]).iter_rows(named=True):
        chains[row["rank"], row["iteration"]].append(row)
    found: list[object] = []
    for (rank, _), chain in chains.items():
        arrivals = [row["arrival_ns"] for row in chain]
        blocking: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for place, row in enumerate(chain):
            slot = sum(arrival < row["end_ns"] for arrival in arrivals) - 1
            is_exposed = any(at == rank and start < row["end_ns"] <= end for at, start, end in exposed)  # type: ignore[operator]
            if is_exposed and slot >= place and row["end_ns"] <= row["window_end_ns"]:
                blocking[slot].append((row["end_ns"], row["position"]))
        found += [max(blocking[place])[1] if place in blocking else None for place in range(len(chain))]
    return found


# A smaller example of a failure is not looked for: each try builds three stages.
@settings(examples(2, suppress_health_check=[HealthCheck.too_slow]), phases=(Phase.reuse, Phase.generate))
@given(st.lists(pipelines(), min_size=6, max_size=6))
def test_the_awaited_position_is_that_of_the_last_end_that_blocks_whatever_holes_there_are(
    runs: list[list[Trace]],
) -> None:
    with store_of_runs(*runs) as store:
        for stage in ("align", "timeline", "graph"):
            build_stage(store, f"traceforge.{stage}")
        for run_id in range(len(runs)):
            said = [row["awaited_position"] for row in store.query(ARRIVALS, [run_id]).iter_rows(named=True)]

            assert said == awaited_of(store, run_id)
