"""Waits that nothing recorded: most ranks stand still while one works, and all go on together. Times are in us.

rank 0, 1   |compute 100|reduce 10|still 100–······|compute …
rank 2      |compute 100|reduce 10|compute 99······|compute …
"""

import pytest

from tests.given import US
from traceforge.attribute.unrecorded_wait import held_ranks, of_held_ranks, of_late_ranks
from traceforge.store.database import Store

STATE = {"state": "nothing_significant"}
EVERYONE = {
    "subject_kind": "job",
    "cause": "several_causes",
    "confidence": "medium",
    "delay_ns_per_iteration": 99 * US,
    "share": 0.5,
}
COLUMNS = "run_id, iteration, rank, start_ns, duration_ns, phase"


def ranks_with(
    *segments: tuple[int, int, int, str], iterations: int = 4, warmup: int = 0, struck: int | None = None
) -> Store:
    """A run of three ranks with the same segments in each iteration, or the first: rank, start and end in us, phase."""
    store = Store(None, threads=1, is_kept=False)
    store.execute("CREATE SCHEMA IF NOT EXISTS timeline; CREATE SCHEMA IF NOT EXISTS align")
    store.execute("CREATE TABLE timeline.mesh (run_id INTEGER, axis VARCHAR)")
    store.execute("CREATE TABLE align.rank AS SELECT 0 AS run_id, UNNEST([0, 1, 2]) AS rank")
    store.execute(
        f"CREATE TABLE timeline.iteration AS SELECT 0 AS run_id, i AS iteration, {210 * US} AS duration_ns, "
        f"i < {warmup} AS is_warmup, FALSE AS is_partial FROM RANGE({iterations}) AS r(i)"
    )
    rows = ", ".join(
        f"(0, {i}, {rank}, {(210 * i + start) * US}, {(end - start) * US}, '{phase}')"
        for i in range(iterations if struck is None else struck)
        for rank, start, end, phase in segments
    )
    store.execute(f"CREATE TABLE timeline.segment AS FROM (VALUES {rows}) AS s({COLUMNS})")
    return store


REST = (0, 110, 209, "idle"), (1, 110, 209, "idle")
LATE = (2, 110, 208, "compute"), (2, 208, 209, "idle")


def test_ranks_that_stand_still_while_one_works_wait_for_it() -> None:
    (held,) = held_ranks(ranks_with(*REST, *LATE)).values()
    assert (held["ranks"], held["met"], held["iterations"], held["held_ns"]) == ([2], 4, 4, 99 * US)

    said = of_held_ranks(STATE, held)

    assert said["kind"] == "cannot_be_known"
    assert said["headline"] == (
        "The other ranks stand still, device and host, while rank 2 works, and go on together: 99.0 µs in 4 of 4 "
        "iterations. What holds them is not recorded; it looks like a barrier."
    )


def test_a_host_that_works_beside_its_idle_device_keeps_them_waiting_too() -> None:
    work = (2, 110, 140, "compute"), (2, 140, 180, "runtime"), (2, 180, 209, "idle")

    assert held_ranks(ranks_with(*REST, *work))[0]["ranks"] == [2]


@pytest.mark.parametrize(
    "segments",
    [
        # All rest; one goes on earlier; the third waits for another rank; it works less than half of the time.
        (*REST, (2, 110, 209, "idle")),
        ((0, 110, 209, "idle"), (1, 110, 190, "idle"), *LATE),
        (*REST, (2, 110, 209, "wait")),
        (*REST, (2, 110, 150, "compute"), (2, 150, 209, "wait")),
        # One rank rests; both rest, but for less than 2.5 % of the iteration.
        ((0, 110, 209, "idle"), *LATE),
        ((0, 206, 209, "idle"), (1, 206, 209, "idle"), (2, 110, 209, "compute")),
    ],
)
def test_ranks_that_rest_otherwise_wait_for_nobody(segments: tuple[tuple[int, int, int, str], ...]) -> None:
    assert held_ranks(ranks_with(*segments)) == {}


def test_twice_may_be_chance() -> None:
    assert held_ranks(ranks_with(*REST, *LATE, iterations=2)) == {}
    assert held_ranks(ranks_with(*REST, *LATE, iterations=4, warmup=2)) == {}


@pytest.mark.parametrize("cause", ["several_causes", "unexplained", "host_stall", "late_launch"])
def test_a_finding_that_all_are_late_says_whom_they_wait_for(cause: str) -> None:
    (held,) = held_ranks(ranks_with(*REST, *LATE)).values()

    said = of_late_ranks(EVERYONE | {"cause": cause}, held)

    assert str(said["summary"]).startswith(
        "The other ranks stand still, device and host, while rank 2 works, and go on"
    )
    assert str(said["summary"]).endswith("it looks like a barrier. It costs the job 99.0 µs an iteration (50 %).")
    assert "for what rank 2 does before it" in str(said["next_step"])


def test_other_findings_and_what_may_be_chance_are_said_as_they_are() -> None:
    (held,) = held_ranks(ranks_with(*REST, *LATE)).values()

    for other in ({"subject_kind": "rank"}, {"cause": "slow_transfer"}, {"confidence": "low"}):
        assert of_late_ranks(EVERYONE | other, held) == {}
    assert of_held_ranks({"state": "finding"}, held) == {}
    assert of_late_ranks(EVERYONE, None) == of_held_ranks(STATE, None) == {}


def test_nothing_is_said_of_pipelines_or_of_waits_that_are_little_over_the_run() -> None:
    # given waits of 6 us in iterations of 210 us: 2.9 % of those struck, 1.4 % of eight of which four are
    short = (0, 203, 209, "idle"), (1, 203, 209, "idle"), (2, 110, 209, "compute")
    pipeline = ranks_with(*REST, *LATE)
    pipeline.execute("INSERT INTO timeline.mesh VALUES (0, 'pp')")

    assert held_ranks(pipeline) == {}
    assert held_ranks(ranks_with(*short))[0]["ranks"] == [2]
    assert held_ranks(ranks_with(*short, iterations=8, struck=4)) == {}
