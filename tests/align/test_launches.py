"""What a job wrote on another day is told from what it wrote today, by its processes or by the time between."""

import polars as pl

from traceforge.align.launches import called, launches

NOON = 1_767_268_800 * 10**9
HOUR = 3_600 * 10**9


def window(start_ns: int, *processes: int | None) -> pl.DataFrame:
    rows = [{"host": "a", "process": one, "raw_first_ns": start_ns, "raw_last_ns": start_ns + 10} for one in processes]
    return pl.DataFrame(rows, schema_overrides={"process": pl.Int64})


def test_windows_of_the_same_processes_are_of_one_launch_however_late() -> None:
    assert launches([window(NOON, 7, 8), window(NOON + 9 * HOUR, 8, 7)]) == [0, 0]


def test_windows_of_other_processes_are_of_another_launch_however_soon() -> None:
    windows = [window(NOON, 7, 8), window(NOON + 20, 7), window(NOON + 40, 9, 10), window(NOON + 60, 9)]

    assert launches(windows) == [NOON, NOON, NOON + 40, NOON + 40]


def test_windows_of_unknown_processes_are_of_another_launch_after_an_hour() -> None:
    assert launches([window(NOON, None), window(NOON + HOUR, None)]) == [0, 0]
    assert launches([window(NOON, None), window(NOON + HOUR + 10, None)]) == [NOON, NOON + HOUR + 10]


def test_clocks_that_count_from_a_boot_tell_no_launch() -> None:
    assert launches([window(1, 7), window(9 * HOUR, 8)]) == [0, 0]


def test_a_run_of_another_launch_is_called_by_its_date() -> None:
    assert called("window 1", NOON, NOON + HOUR) == "earlier job of 2026-01-01 12:00 UTC, window 1"
    assert called("window 2", NOON + HOUR, NOON) == "later job of 2026-01-01 13:00 UTC, window 2"
    assert called("window 2", NOON, NOON) == "window 2"
