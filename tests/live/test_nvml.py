"""The device's clock is a row, where a driver tells it, and nothing happens where none does."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.live.device import UUID, driver, torch_on_a_device
from tests.live.jobs import MS, HandClock
from tests.sources.reading import Reading
from tests.sources.test_live_log import read
from traceforge.live import writer
from traceforge.live.nvml import NvmlReadings
from traceforge.live.recorder import Recorder, start


def recorder(folder: Path, hook: NvmlReadings, clock: HandClock) -> Recorder:
    return start(folder, environment={}, rank=0, world_size=1, clock_ns=clock, hooks=[hook])


def read_device(one: Recorder) -> None:
    """What the recorder's thread does once a second."""
    assert one.writer is not None
    for act in one.writer.before_flush:
        act()


def recorded(folder: Path, torch: Any, library: Any, *, seconds: int = 1) -> tuple[Recorder, Reading]:
    clock = HandClock()
    with recorder(folder, NvmlReadings(torch, lambda: library, folder), clock) as one:
        for _ in range(seconds):
            clock.turn(1_000 * MS)
            read_device(one)
            one.step()
    return one, read(folder / "rank0.live")


def test_what_the_driver_tells_becomes_telemetry(tmp_path: Path) -> None:
    # given a device that its power cap (bit 4) holds at 1,410 MHz, read after 1 s and 2 s
    one, reading = recorded(tmp_path, torch_on_a_device(), driver(1_410, reasons=4), seconds=2)

    # then each quantity is a series of the device, in the units of all telemetry
    series = {row["series_id"]: row for row in reading.rows("telemetry_series")}
    samples = reading.rows("telemetry_sample")
    assert sorted((series[row["series_id"]]["metric"], row["sample"], row["value"]) for row in samples) == [
        ("power_limit_w", 0, 700), ("power_limit_w", 1, 700), ("power_w", 0, 310.5), ("power_w", 1, 310.5),
        ("sm_clock_max_mhz", 0, 1_755), ("sm_clock_max_mhz", 1, 1_755), ("sm_clock_mhz", 0, 1_410),
        ("sm_clock_mhz", 1, 1_410), ("temperature_c", 0, 61), ("temperature_c", 1, 61), ("throttle_reasons", 0, 4),
        ("throttle_reasons", 1, 4),
    ]  # fmt: skip
    named = {(row["uuid"], row["pci_address"], row["device_name"], row["time_basis"]) for row in series.values()}
    assert named == {(UUID, "0000:81:00.0", "NVIDIA H100 80GB HBM3", "utc")}

    # and on the clock of the steps, which ended when the device was read
    ends = {event["raw_start_ns"] + event["duration_ns"] for event in reading.events}
    assert {row["raw_at_ns"] for row in samples} == ends
    assert (one.failures, reading.codes) == ({}, [])


def test_the_recording_says_which_device_it_is_and_where(tmp_path: Path) -> None:
    # given a device on bus 81, which hangs on NUMA node 1
    (tmp_path / "0000:81:00.0").mkdir()
    (tmp_path / "0000:81:00.0" / "numa_node").write_text("1\n")

    _, reading = recorded(tmp_path, torch_on_a_device(), driver(1_755))

    [profile] = reading.rows("profile")
    assert json.loads(profile["metadata"])["live"]["device"] == {
        "uuid": UUID, "name": "NVIDIA H100 80GB HBM3", "pci": "0000:81:00.0", "numa_node": 1,
    }  # fmt: skip


def test_without_a_library_or_a_device_there_are_no_rows_and_no_failures(tmp_path: Path) -> None:
    unused = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: False))
    refusing = SimpleNamespace(nvmlInit_v2=lambda: 9)
    other = driver(1_410, uuid="another")

    for number, (torch, library) in enumerate(
        [(torch_on_a_device(), None), (torch_on_a_device(), refusing), (torch_on_a_device(), other), (unused, other)]
    ):
        one, reading = recorded(tmp_path / str(number), torch, library)
        assert reading.rows("telemetry_series") == []
        assert reading.names == ["ProfilerStep#0"]
        assert (one.failures, reading.codes) == ({}, [])


def test_what_one_device_does_not_tell_costs_that_quantity_alone(tmp_path: Path) -> None:
    # given a driver without the clock's reasons, whose device refuses to tell its power
    library = driver(1_410)
    del library.nvmlDeviceGetCurrentClocksThrottleReasons
    library.nvmlDeviceGetPowerUsage = lambda *_: 3

    _, reading = recorded(tmp_path, torch_on_a_device(), library)

    metrics = {row["metric"] for row in reading.rows("telemetry_series")}
    assert metrics == {"sm_clock_mhz", "sm_clock_max_mhz", "power_limit_w", "temperature_c"}


def test_a_device_is_read_from_when_the_program_uses_it(tmp_path: Path) -> None:
    # given a program that uses no device in its first step
    torch, clock = torch_on_a_device(), HandClock()
    torch.cuda.is_initialized = lambda: len(steps) > 1
    steps: list[int] = []
    with recorder(tmp_path, NvmlReadings(torch, lambda: driver(1_410)), clock) as one:
        for number in range(2):
            clock.turn(MS)
            steps.append(number)
            one.step()
            read_device(one)

    samples = read(tmp_path / "rank0.live").rows("telemetry_sample")
    assert {row["sample"] for row in samples} == {0}
    assert len(samples) == 6


def test_a_driver_that_fails_is_counted_and_given_up(tmp_path: Path) -> None:
    library = driver(1_410)

    def fail(*_: object) -> int:
        raise OSError("the device fell off the bus")

    library.nvmlDeviceGetTemperature = fail

    one, reading = recorded(tmp_path, torch_on_a_device(), library, seconds=25)

    assert one.failures["NVML"] == (20, "OSError: the device fell off the bus")
    assert len(reading.names) == 25


def test_a_driver_that_never_answers_does_not_keep_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FLUSH_S", 0.001)
    monkeypatch.setattr(writer, "LONGEST_END_S", 0.01)
    asked, answer = threading.Event(), threading.Event()

    def hang(*_: object) -> int:
        asked.set()
        return int(answer.wait(60))

    library = driver(1_410)
    library.nvmlDeviceGetTemperature = hang
    with recorder(tmp_path, NvmlReadings(torch_on_a_device(), lambda: library), HandClock()) as one:
        one.step()
        assert asked.wait(60)
    answer.set()

    assert read(tmp_path / "rank0.live").names == ["ProfilerStep#0"]
