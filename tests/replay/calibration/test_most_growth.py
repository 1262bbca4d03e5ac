"""By how much transfers can have grown at most: by what they took beyond a clean one, if all of it was growth."""

import polars as pl
import pytest

from traceforge.replay.calibration.collectives import most_growth


def collectives(*places: tuple[int, float, float]) -> pl.DataFrame:
    """Four iterations of one communicator's all-reduces: size, transfer and mean wait by position."""
    rows = [
        {"communicator_id": 0, "op": "all_reduce", "size_bytes": size, "position": position, "transfer_ns": transfer,
         "wait_ns": wait}
        for position, (size, transfer, wait) in enumerate(places)
        for _ in range(4)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_transfers_cannot_have_grown_by_more_than_they_took() -> None:
    # given 60 after a mean wait of 50, and 60 of another size after one of 150: at most all 60 are growth
    assert most_growth(collectives((1, 60.0, 50.0), (2, 60.0, 150.0))) == pytest.approx(60 / 150)


def test_a_transfer_of_the_same_size_that_nobody_waits_for_shows_what_is_no_growth() -> None:
    # given 90 after a mean wait of 100, and 50 without any: of the 90 at least 70 % of 50 are no growth
    assert most_growth(collectives((1, 90.0, 100.0), (1, 50.0, 0.0))) == pytest.approx((90 - 35) / 100)


def test_a_transfer_that_is_shorter_the_longer_ranks_wait_has_not_grown() -> None:
    assert most_growth(collectives((1, 30.0, 100.0), (1, 50.0, 0.0))) == 0


def test_without_waits_nothing_is_bounded() -> None:
    assert most_growth(collectives((1, 60.0, 0.0))) == float("inf")
