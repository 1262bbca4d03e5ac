"""Readings of a device become kernels: what it did is told only where the readings say so."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.given import add_facts, built, rows_of
from tests.live.device_jobs import DeviceFaults, record_device_job
from tests.live.jobs import MS
from tests.sources.test_live_log import NAMES, OPENING, read_bytes
from traceforge.live.layout import Row, RowKind, facts_frame, rows_frame
from traceforge.sources.live_log.device_track import DeviceTrack
from traceforge.sources.live_log.opening import read_opening
from traceforge.sources.live_log.signs import Signs
from traceforge.store.database import Store

MARK, COLLECTIVE = int(RowKind.DEVICE_MARK), int(RowKind.DEVICE_COLLECTIVE)
STEP = (int(RowKind.STEP), 0, 0, 100 * MS, 0, 0, 0)


def mark(asked_ms: int, reached_ms: int, *, is_quiet: bool = False) -> Row:
    return MARK, 0, asked_ms * MS, reached_ms * MS, int(is_quiet), 0, 0


def collective(asked_ms: int, reached_ms: int, ended_ms: int, *, is_awaited: bool = True) -> Row:
    return COLLECTIVE, 1, reached_ms * MS, ended_ms * MS, 0, (reached_ms - asked_ms) * MS, int(is_awaited)


def kernels_of(tmp_path: Path, *rows: Row) -> list[tuple[str, int, int]]:
    """Name, start and end of each kernel, ms."""
    reading = read_bytes(tmp_path, OPENING, NAMES, rows_frame([*rows, STEP]), facts_frame({"ended": True}))
    assert reading.codes == []
    found = [event for event in reading.events if event["category"] == "kernel"]
    times = [(str(one["name"]), int(str(one["raw_start_ns"])) - 4_000, int(str(one["duration_ns"]))) for one in found]
    return sorted((name, start // MS, (start + duration) // MS) for name, start, duration in times)


def test_a_device_that_is_behind_its_host_was_at_work(tmp_path: Path) -> None:
    # given a mark that is reached at once, and a collective that is asked for at 5 and reached at 40 ms
    #   host     M|launch|C
    #   device    |work·············|reduce|
    found = kernels_of(tmp_path, mark(2, 2), collective(5, 40, 44), mark(6, 50))

    # then it worked between them, and again until the next mark
    assert found == [("device_work", 2, 40), ("device_work", 44, 50), ("ncclKernel_all_reduce", 40, 44)]


def test_a_device_that_is_there_at_once_waited_for_its_host(tmp_path: Path) -> None:
    assert kernels_of(tmp_path, mark(2, 2), collective(30, 30, 34)) == [("ncclKernel_all_reduce", 30, 34)]


def test_a_device_that_is_given_nothing_does_not_work(tmp_path: Path) -> None:
    # given the end of a batch's loading that the device gets to late, as it still has work from before
    found = kernels_of(tmp_path, mark(2, 2), mark(3, 20), mark(10, 20, is_quiet=True), collective(12, 30, 31))

    assert found == [("device_work", 2, 20), ("device_work", 20, 30), ("ncclKernel_all_reduce", 30, 31)]


def test_a_collective_starts_when_the_one_before_in_its_group_has_ended(tmp_path: Path) -> None:
    # given two that nobody awaits, of which the second is reached while the first is on its way
    found = kernels_of(
        tmp_path, mark(0, 0), collective(1, 10, 30, is_awaited=False), collective(2, 20, 35, is_awaited=False)
    )

    # then the second one lasts from 30 to 35 ms, and work goes on until it is reached
    assert [one for one in found if one[0] != "device_work"] == [
        ("ncclKernel_all_reduce", 10, 30),
        ("ncclKernel_all_reduce", 30, 35),
    ]
    assert [one[1:] for one in found if one[0] == "device_work"] == [(0, 10), (10, 20)]


def test_a_collective_that_comes_later_than_what_was_asked_after_it_adds_no_work() -> None:
    # given one that was asked for at 1 ms and is told only with its wait, when a mark of 8 ms was handed over already
    signs, opening = Signs(), read_opening({"clock": [[0, 0]]})
    signs.add([[1, ["collective", "all_reduce", "dp", [0, 1], 4, 4, "float", None]]])
    assert opening is not None
    track = DeviceTrack()
    first, later = [mark(0, 0), mark(8, 20)], [collective(1, 10, 30, is_awaited=False), mark(9, 25)]
    batches = [track.add(np.array(rows, dtype=np.int64).T, signs, opening) for rows in (first, later)]
    last = track.add(np.array([mark(40, 50)], dtype=np.int64).T, signs, opening)

    # then the device worked on from 20 ms, not again from 10 on
    frames = [batch.frame for batch in (*batches, last) if batch is not None]
    work = pl.concat(frames).filter(pl.col("name") == "device_work").sort("raw_start_ns")
    found = [(start // MS, duration // MS) for start, duration in work.select("raw_start_ns", "duration_ns").rows()]
    assert found == [(0, 20), (20, 5), (25, 25)]


@pytest.mark.parametrize(
    ("faults", "told"),
    [
        (DeviceFaults(), None),
        (DeviceFaults(works={2: 10 * MS}), ("2", "slow_compute")),
        (DeviceFaults(loads={1: 10 * MS}), ("1", "input_stall")),
        (DeviceFaults(pauses={3: 10 * MS}), ("3", "unexplained")),
    ],
)
def test_a_job_is_judged_by_what_its_devices_did(
    tmp_path: Path, faults: DeviceFaults, told: tuple[str, str] | None
) -> None:
    # given four ranks, one of which computes, loads or pauses 10 ms longer in each of 20 steps of 45
    record_device_job(tmp_path, faults)
    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        built(store, "attribute.finding")
        found = rows_of(
            store,
            "SELECT subject, cause, delay_ns_per_iteration, next_step FROM attribute.finding WHERE confidence <> 'low'",
        )

    # then that is what it costs; of a host that does nothing the recording does not say why
    assert [one[:2] for one in found] == ([] if told is None else [told])
    if told is not None:
        assert float(str(found[0][2])) == pytest.approx(10 * MS, rel=0.05)
        assert "device_work" not in str(found[0][3])
