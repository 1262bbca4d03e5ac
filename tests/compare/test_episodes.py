"""Iterations that are slower than all of the baseline: an episode, or one of many that chance makes the slowest."""

from collections.abc import Iterator, Sequence

import pytest

from tests.given import MS, US, add_run, built, data_parallel_job
from traceforge.compare import Side, compare_runs
from traceforge.report.comparison_text import headline, tail
from traceforge.store.database import Store

# How much longer than 50 ms each iteration computes, us: 12 of the baseline, then of longer runs.
USUAL = [-90, 40, 10, -60, 100, -20, 70, -100, 30, 0, -40, 60]
LONGER = [*USUAL, 120, -110, 20, 130, -70, 80, -10, 110, 50, -80, -30, 90]
EPISODE = [*USUAL[:6], *(20_000 + extra for extra in USUAL[:3]), *USUAL[6:], *USUAL[:9]]


def computing(extra_us: Sequence[int]) -> list[list[int]]:
    return [[50 * MS + extra * US + rank * US for rank in range(3)] for extra in extra_us]


@pytest.fixture(scope="module")
def sides() -> Iterator[dict[str, Side]]:
    lengths = {"usual": USUAL, "longer": LONGER, "episode": EPISODE}
    with Store(None, threads=1, is_kept=False) as store:
        runs = {name: add_run(store, *data_parallel_job(computing(us)), run_name=name) for name, us in lengths.items()}
        built(store, "align", "replay", "attribute")
        yield {name: Side(store, run_id) for name, run_id in runs.items()}


def test_of_twice_as_many_iterations_some_are_the_slowest_by_chance(sides: dict[str, Side]) -> None:
    # given 24 iterations that scatter as 12 did, three of them by 10 to 30 us beyond the slowest
    found = compare_runs(sides["usual"], sides["longer"])

    assert tail(found).startswith("3 of 24 iterations are slower than the baseline's slowest")
    assert headline(found).startswith("No significant change: ")
    assert "episode" not in headline(found)


def test_iterations_far_beyond_the_baseline_are_an_episode(sides: dict[str, Side]) -> None:
    found = compare_runs(sides["usual"], sides["episode"])

    assert not found.iteration.is_significant
    assert "but 3 iterations are clearly slower than any before: an episode" in headline(found)
