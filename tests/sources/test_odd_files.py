"""Files that no writer should write, of every profiler's format: each costs what is odd, and nothing beside it."""

import sqlite3
from pathlib import Path

import pytest

from tests.sources import test_pftrace as pftrace
from tests.sources import test_rocpd as rocpd
from tests.sources import test_telemetry as telemetry
from tests.sources import test_xplane as xplane
from tests.sources.nsys_exports import Export, call, export, kernel, process, read
from tests.sources.reading import Reading
from traceforge.export.protobuf import number
from traceforge.records import Batch, ReadOptions
from traceforge.sources.nsys import NsysSource
from traceforge.sources.xplane import XplaneSource

__all__ = ["export"]
FAR = 2**62


def test_an_export_without_strings_says_that_it_has_no_names(tmp_path: Path) -> None:
    path = tmp_path / "report.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE META_DATA_EXPORT (name, value);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, shortName);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 3);"
    )
    connection.close()

    reading = read(path)

    assert [event["name"] for event in reading.events] == ["kernel"]
    assert reading.issue("nsys_no_names").count == 1


def test_processes_of_one_number_on_two_machines_are_two_parts_with_their_hosts(export: Export) -> None:
    other = 2 << 48
    path = export(
        TARGET_INFO_SYSTEM_ENV=[
            {"globalVid": vid, "name": "Hostname", "value": host} for vid, host in ((1 << 48, "a"), (other, "b"))
        ],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2), kernel(3, 4, globalPid=other + (7 << 24))],
    )

    readings = [read(path, part) for part in NsysSource().parts(path)]

    assert NsysSource().parts(path) == ["device 0, process 7, machine 1", "device 0, process 7, machine 2"]
    assert [(one.summary.host, one.events[0]["raw_start_ns"]) for one in readings] == [("a", 1), ("b", 3)]


def test_a_report_of_several_hosts_that_names_no_machine_states_none(export: Export) -> None:
    hosts = [{"name": "Hostname", "value": host} for host in ("a", "b")]

    assert read(export(TARGET_INFO_SYSTEM_ENV=hosts, CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)])).summary.host is None


def test_times_that_no_clock_shows_cost_their_row_or_their_end(export: Export) -> None:
    path = export(
        TARGET_INFO_SESSION_START_TIME=[{"utcEpochNs": 2**63 - 1}],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(5, FAR), kernel(FAR, FAR + 1), kernel(-(2**63), 2**63 - 1)],
    )

    reading = read(path)

    assert [(event["raw_start_ns"], event["duration_ns"]) for event in reading.events] == [(5, None)]
    assert reading.issue("nsys_event_without_timestamp").lost_events == 2
    assert reading.issue("nsys_no_session_start").count == 1


def test_a_process_that_is_a_text_is_none_and_its_kernel_is_kept(export: Export) -> None:
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2), kernel(3, 4, globalPid="7", deviceId=1)])

    stored = [read(path, part).summary.stored_count for part in NsysSource().parts(path)]

    assert stored == [1, 1]


def test_rows_of_a_table_without_times_are_counted(export: Export) -> None:
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=[{"deviceId": 0}], CUPTI_ACTIVITY_KIND_RUNTIME=[call(1, 2)])

    assert "KERNEL 1" in read(path).issue("nsys_rows_of_no_rank").detail


def test_ranges_none_of_which_names_a_registered_text_keep_their_own(export: Export) -> None:
    # given a piece whose only row has no start, so that no row is left to look a name up for
    row = {"start": "x", "end": 3, "text": "a", "textId": None, "eventType": 59, "globalTid": process(7)}
    path = export(NVTX_EVENTS=[row], CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)])

    assert read(path).issue("nsys_event_without_timestamp").count == 1


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("DROP TABLE rocpd_info_kernel_symbol", ["kernel", "hipLaunchKernel"]),
        ("DROP TABLE rocpd_string", ["call", "gemm(float*)"]),
    ],
)
def test_a_missing_table_of_names_costs_the_names(tmp_path: Path, change: str, names: list[str]) -> None:
    reading = changed(tmp_path, change)

    assert reading.summary.stored_count == 5
    assert {event["name"] for event in reading.events}.issuperset(names)
    assert reading.issue("rocpd_no_names").count == 1


def test_an_event_that_stands_twice_doubles_no_record(tmp_path: Path) -> None:
    twice = (
        "ALTER TABLE rocpd_event RENAME TO old; CREATE TABLE rocpd_event (id, guid, category_id, stack_id);"
        "INSERT INTO rocpd_event SELECT * FROM old; INSERT INTO rocpd_event SELECT * FROM old"
    )

    reading = changed(tmp_path, twice)

    assert (reading.summary.event_count, sorted(e["correlation"] for e in reading.events)) == (5, [50, 50, 51, 52, 53])


def test_a_record_of_a_time_that_no_clock_shows_is_not_kept(tmp_path: Path) -> None:
    reading = changed(tmp_path, f"UPDATE rocpd_region SET start = {-(2**63)}")

    assert reading.issue("rocpd_event_without_timestamp").lost_events == 3


def changed(tmp_path: Path, change: str) -> Reading:
    path = rocpd.database(tmp_path / "results.db", "")
    connection = sqlite3.connect(path)
    connection.executescript(change)
    connection.close()
    return rocpd.read(path)


def test_a_number_that_is_given_to_another_name_names_nothing(tmp_path: Path) -> None:
    # given a sequence that clears its state in mid-trace and begins to number anew
    anew = pftrace.packet(number(13, 1)) + pftrace.interned(2, 1, "aten::add")
    first = pftrace.begin(10, 1, 1) + pftrace.end(20) + pftrace.begin(30, 2, 2) + pftrace.end(40)

    reading = pftrace.read(tmp_path, pftrace.HEAD + first + anew + pftrace.begin(50, 1, 1) + pftrace.end(60))

    names = [event["name"] for event in reading.events]
    assert names[1] == "cudaLaunchKernel"
    assert not {"aten::mm", "aten::add"} & set(names)
    assert reading.issue("pftrace_names_given_anew").count == 1


def test_a_number_that_is_given_its_name_again_keeps_it(tmp_path: Path) -> None:
    reading = pftrace.read(
        tmp_path, pftrace.HEAD + pftrace.interned(2, 1, "aten::mm") + pftrace.begin(10, 1, 1) + pftrace.end(20)
    )

    assert [event["name"] for event in reading.events] == ["aten::mm"]


@pytest.mark.parametrize(
    "written", ["2026-09-11T04:19:41.982Z", "2026/09/11 06:19:41.982 +02:00", "2026-09-11 00:49:41.982-0330"]
)
def test_a_time_with_its_zone_is_utc(tmp_path: Path, written: str) -> None:
    reading = telemetry.read(tmp_path, f"timestamp, index, clocks.sm [MHz]\n{written}, 0, 1410 MHz\n")

    assert [row[3] for row in telemetry.measured(reading)] == [982_000_000]
    assert [row["time_basis"] for row in reading.rows("telemetry_series")] == ["utc"]


def test_lines_without_a_zone_among_those_with_one_are_counted(tmp_path: Path) -> None:
    lines = "2026-09-11T04:19:41Z, 0, 1410 MHz\n2026-09-11T04:19:42, 0, 1410 MHz\n"

    reading = telemetry.read(tmp_path, f"timestamp, index, clocks.sm [MHz]\n{lines}")

    assert reading.issue("telemetry_unreadable_line").lost_events == 1
    assert len(telemetry.measured(reading)) == 1


def test_two_planes_of_one_name_are_two_parts(tmp_path: Path) -> None:
    planes = [
        xplane.plane("/device:GPU:0", xplane.line("Stream #1(Kernel)", xplane.event(1, at, 1_000))) for at in (0, 9_000)
    ]
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(b"".join(planes))

    readings = []
    for part in XplaneSource().parts(path):
        batches: list[Batch] = []
        readings.append(Reading(XplaneSource().read(path, batches.append, ReadOptions(part=part)), batches))

    assert [one.events[0]["raw_start_ns"] for one in readings] == [0, 9]
