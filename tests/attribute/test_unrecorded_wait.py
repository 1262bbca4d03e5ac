"""Waits that nothing recorded: most ranks stand still while one works, and all go on together. Times are in us.

rank 0, 1   |compute 100|reduce 10|still 100–······|compute …
rank 2      |compute 100|reduce 10|compute 99······|compute …
"""

import pytest

from tests.given import US
from traceforge.attribute.unrecorded_wait import held_ranks, of_held_ranks
from traceforge.store.database import Store

STATE = {"state": "nothing_significant", "finding_subject": None, "has_stages": False, "duration_ns": 210 * US}
COLUMNS = "run_id, iteration, rank, start_ns, duration_ns, phase"


def ranks_with(*segments: tuple[int, int, int, str], iterations: int = 4, warmup: int = 0) -> Store:
    """A run of three ranks with the same segments in each iteration: rank, start and end in us, phase."""
    store = Store(None, threads=1, is_kept=False)
    store.execute("CREATE SCHEMA IF NOT EXISTS timeline; CREATE SCHEMA IF NOT EXISTS align")
    store.execute("CREATE TABLE align.rank AS SELECT 0 AS run_id, UNNEST([0, 1, 2]) AS rank")
    store.execute(
        f"CREATE TABLE timeline.iteration AS SELECT 0 AS run_id, i AS iteration, {210 * US} AS duration_ns, "
        f"i < {warmup} AS is_warmup, FALSE AS is_partial FROM RANGE({iterations}) AS r(i)"
    )
    rows = ", ".join(
        f"(0, {i}, {rank}, {(210 * i + start) * US}, {(end - start) * US}, '{phase}')"
        for i in range(iterations)
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


def test_it_is_said_in_the_place_of_a_finding_that_all_are_late() -> None:
    (held,) = held_ranks(ranks_with(*REST, *LATE)).values()

    assert "kind" not in of_held_ranks(STATE | {"state": "finding", "finding_subject": "job"}, held)
    assert of_held_ranks(STATE | {"state": "finding", "finding_subject": "job"}, held)["headline"]


def test_nothing_is_said_of_pipelines_beside_findings_or_of_little() -> None:
    (held,) = held_ranks(ranks_with(*REST, *LATE)).values()

    assert of_held_ranks(STATE | {"has_stages": True}, held) == {}
    assert of_held_ranks(STATE | {"state": "finding", "finding_subject": "rank"}, held) == {}
    assert of_held_ranks(STATE | {"duration_ns": 210_000 * US}, held) == {}
    assert of_held_ranks(STATE, None) == {}
