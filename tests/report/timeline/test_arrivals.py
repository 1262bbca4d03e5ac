"""Collectives of an opened rank: each from its arrival to its end, side by side where several are under way at once."""

from unittest.mock import Mock

import polars as pl
import pytest

from traceforge.report.timeline.arrivals import LinkedCollectives, communication_rows, linked_collectives


def calls_of(*spans: tuple[int, int, int]) -> pl.DataFrame:
    """Arrivals of one rank: (arrival, end, last arrival of all ranks), ns."""
    return pl.DataFrame(
        {
            "collective_id": range(len(spans)),
            "arrival_ns": [span[0] for span in spans],
            "end_ns": [span[1] for span in spans],
            "last_arrival_ns": [span[2] for span in spans],
            "op": "all_reduce",
            "size_bytes": 4_000,
            "group_name": "mesh_dp",
        }
    )


NO_LINES = LinkedCollectives([], {}, 0)


def test_calls_that_overlap_stand_in_rows_of_their_own() -> None:
    # 0    |------|            then |---|
    # 1       |-------|
    # 2         |-----|   and a fourth at once, which has no row of its own
    rows = communication_rows(calls_of((0, 60, 0), (20, 90, 20), (30, 90, 30), (40, 95, 40), (95, 99, 95)), NO_LINES)

    assert [row.title for row in rows] == ["communication", "communication 2", "communication 3"]
    assert [row.start_ns.tolist() for row in rows] == [[0, 95], [20], [30, 40]]


def test_waiting_ends_when_the_last_rank_arrives_or_the_call_ends() -> None:
    # arrives at 10; the last rank at 50, or never within the call, or before
    (row,) = communication_rows(calls_of((10, 80, 50), (100, 120, 500), (200, 220, 150)), NO_LINES)
    assert row.until_ns == [50, 120, 200]
    assert row.labels[0] == ("all_reduce 4.00\N{NO-BREAK SPACE}kB", "mesh_dp", "transfer")


def test_a_rank_without_collectives_has_no_row() -> None:
    assert communication_rows(calls_of(), NO_LINES) == []


@pytest.mark.parametrize(("is_below", "last"), [(False, 1), (True, None)])
def test_a_rank_is_called_last_only_where_the_clocks_can_tell(is_below: bool, last: int | None) -> None:
    # given two ranks, of which rank 1 arrives 30 ns after rank 0
    arrivals = pl.DataFrame(
        {
            "collective_id": [0, 0],
            "iteration": [3, 3],
            "rank": [0, 1],
            "arrival_ns": [10, 40],
            "end_ns": [90, 90],
            "late_ns": [0, 30],
            "below_resolution": [True, is_below],
            "last_rank": [1, 1],
            "op": "all_reduce",
            "size_bytes": 4_000,
            "group_name": "mesh_dp",
        }
    )

    (entry,) = linked_collectives(arrivals, Mock(step_at=lambda _iteration, _rank, at_ns: at_ns)).entries

    assert entry[3] == last
    assert entry[4:] == [[0, 1], [10, 40]]
