"""Counters of a Perfetto trace become readings of devices; bytes are made by hand, as its writer writes them."""

import struct
from pathlib import Path

import pytest

from tests.given import add_facts, built, rows_of
from tests.sources.test_pftrace import EPOCH, HEAD, packet, read, stage
from traceforge.export.protobuf import number, text
from traceforge.store.database import Store

MS = 1_000_000
NAMES = {0: "SM Clock (MHz)", 1: "SM Active (%)", 2: "Fan Speed (%)"}


def described(device: int, iid: int = 1) -> bytes:
    specs = b"".join(text(1, number(1, one, keep_zero=True) + text(2, name)) for one, name in NAMES.items())
    entry = number(1, iid) + number(3, device, keep_zero=True) + text(2, specs)
    return packet(text(12, text(47, entry)))


def sample(at_ns: int, counter: int, value: float, iid: int = 1) -> bytes:
    said = number(1, counter, keep_zero=True) + b"\x19" + struct.pack("<d", value)
    return packet(text(52, number(4, iid) + text(2, said)), at_ns=at_ns)


def readings(tmp_path: Path, *packets: bytes) -> list[tuple[object, ...]]:
    """By time: metric, device and value."""
    reading = read(tmp_path, HEAD + b"".join(packets))
    series = {row["series_id"]: (row["metric"], row["device"]) for row in reading.rows("telemetry_series")}
    return [
        (row["raw_at_ns"] - EPOCH, *series[row["series_id"]], row["value"]) for row in reading.rows("telemetry_sample")
    ]


def test_samples_are_means_of_10_ms_of_the_device_of_their_descriptor(tmp_path: Path) -> None:
    # given two samples of a clock in the first 10 ms, and clock and load of another device in the next
    found = readings(
        tmp_path, described(3), described(0, iid=2), sample(1 * MS, 0, 1400), sample(9 * MS, 0, 1440),
        sample(12 * MS, 0, 1755, iid=2), sample(12 * MS, 1, 97, iid=2),
    )  # fmt: skip

    assert found == [
        (10 * MS, "sm_clock_mhz", 3, 1420.0),
        (20 * MS, "sm_clock_mhz", 0, 1755.0),
        (20 * MS, "sm_active_share", 0, pytest.approx(0.97)),
    ]


def test_whole_numbers_are_values_too(tmp_path: Path) -> None:
    whole = packet(text(52, number(4, 1) + text(2, number(2, 1410))), at_ns=1)

    assert readings(tmp_path, described(3), whole) == [(10 * MS, "sm_clock_mhz", 3, 1410.0)]


def test_other_counters_and_odd_samples_are_counted(tmp_path: Path) -> None:
    # given a fan's speed, a counter and a descriptor that nothing describes, a value that is none, a sample cut short
    odd = [
        sample(1, 2, 30),
        sample(1, 9, 3),
        sample(1, 0, 3, iid=7),
        sample(1, 0, float("nan")),
        packet(text(52, b"\x12\x7f")),
    ]

    reading = read(tmp_path, HEAD + described(3) + b"".join(odd) + stage(5, 10))

    assert reading.rows("telemetry_sample") == []
    assert reading.issue("pftrace_counters_not_read").count == 4


def test_a_trace_s_counters_are_its_rank_s_though_all_processes_call_their_device_3(tmp_path: Path) -> None:
    # given two ranks without a host, each of which used a device 3 of its own
    for rank, mhz in ((0, 1755), (1, 1410)):
        trace = (
            HEAD + described(3) + b"".join(stage(20 * MS * n, 15 * MS) + sample(20 * MS * n, 0, mhz) for n in range(4))
        )
        (tmp_path / f"rank{rank}.pftrace").write_bytes(trace)

    with Store(None, is_kept=False) as store:
        add_facts(store, tmp_path)
        built(store, "fabric.telemetry", "fabric.telemetry_series")
        found = rows_of(store, "SELECT DISTINCT rank, joined_by FROM fabric.telemetry_series ORDER BY rank")
        clocks = rows_of(store, "SELECT rank, MAX(value) FROM fabric.telemetry GROUP BY rank ORDER BY rank")

    assert found == [(0, "trace"), (1, "trace")]
    assert clocks == [(0, 1755.0), (1, 1410.0)]
