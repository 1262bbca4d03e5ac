"""Jobs whose sums mislead: several groups that reduce at once, and iterations that begin before the last one ends."""

from collections.abc import Iterator, Sequence

import pytest

from tests.given import MS, Trace, add_run, built
from traceforge.compare import Side, compare_runs
from traceforge.compare.comparability import job_facts
from traceforge.report.comparison_text import headline
from traceforge.store.database import Store

ITERATIONS = 8


def in_pairs(transfer_ms: int) -> Sequence[Trace]:
    """Four pairs of ranks, each of which computes 20 ms and reduces within the pair, three times an iteration."""
    step_ms = 3 * (20 + transfer_ms)
    traces = [Trace(rank) for rank in range(8)]
    for rank, trace in enumerate(traces):
        pair = [rank // 2 * 2, rank // 2 * 2 + 1]
        for number in range(ITERATIONS):
            start = number * step_ms * MS
            trace.step(number, start, start + step_ms * MS)
            for at in range(start, start + step_ms * MS, (20 + transfer_ms) * MS):
                end = at + (20 + transfer_ms) * MS
                trace.kernel(at, at + 20 * MS).collective(at + 20 * MS, end, group=f"tp{pair[0]}", ranks=pair)
    return traces


def in_turn(compute_ms: int) -> Sequence[Trace]:
    """Two ranks, the second of which is half an iteration behind the first.

    rank 0  |step 0     |step 1     |step 2     |
    rank 1        |step 0     |step 1     |step 2     |
    """
    step = 2 * compute_ms * MS
    traces = [Trace(rank) for rank in range(2)]
    for number in range(ITERATIONS):
        for rank, trace in enumerate(traces):
            start = number * step + rank * step // 2
            trace.step(number, start, start + step).kernel(start, start + compute_ms * MS)
            trace.kernel(start + compute_ms * MS, start + step)
        for rank, trace in enumerate(traces):
            trace.collective(number * step + step - MS + rank, number * step + step, issue_ns=number * step + step - MS)
    return traces


@pytest.fixture(scope="module")
def sides() -> Iterator[dict[str, Side]]:
    jobs = {
        "pairs": in_pairs(2),
        "slower pairs": in_pairs(4),
        "turns": in_turn(10),
        "longer turns": in_turn(12),
    }
    with Store(None, threads=1, is_kept=False) as store:
        runs = {name: add_run(store, *traces, run_name=name) for name, traces in jobs.items()}
        built(store, "align", "replay", "attribute")
        yield {name: Side(store, run_id) for name, run_id in runs.items()}


def test_transfers_of_groups_side_by_side_are_those_of_a_rank(sides: dict[str, Side]) -> None:
    # given three reductions of 4 in the place of 2 ms on each rank: 6 ms, as the iteration, and not 24 of four pairs
    found = compare_runs(sides["pairs"], sides["slower pairs"])

    (change,) = found.of("collective_transfer", only_significant=True)
    assert (change.before_ns, change.after_ns) == (pytest.approx(6 * MS), pytest.approx(12 * MS))
    assert change.difference_ns == pytest.approx(found.iteration.difference_ns)
    assert job_facts(sides["pairs"]).calls == {"all_reduce/2048/2": 3.0}


def test_where_iterations_overlap_it_is_said_how_often_one_begins(sides: dict[str, Side]) -> None:
    # given steps of 20 and 24 ms, which with the rank that is behind last 30 and 36 ms
    found = compare_runs(sides["turns"], sides["longer turns"])

    assert (found.iteration.before_ns, found.iteration.after_ns) == (30 * MS, 36 * MS)
    assert found.pace_ns == (20 * MS, 24 * MS)
    told = " ".join(headline(found).split())
    assert told.endswith("; they overlap, one begins every 20.0 ms → 24.0 ms (+20 %)")


def test_where_iterations_do_not_overlap_nothing_is_said_of_it(sides: dict[str, Side]) -> None:
    found = compare_runs(sides["pairs"], sides["slower pairs"])

    assert found.pace_ns is None
    assert "overlap" not in headline(found)
