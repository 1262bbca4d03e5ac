"""Exports of Nsight Systems that are odd, damaged or none: what is lost is counted or refused."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.sources.nsys_exports import Export, call, kernel, nvtx, process, read
from traceforge.errors import InputUnusableError
from traceforge.reading.sqlite_file import open_sqlite
from traceforge.sources.nsys import NsysSource


def test_odd_values_cost_one_row_or_one_column(export: Export) -> None:
    # given a start that is no number, an end before the start, and a stream beyond its column
    path = export(
        CUPTI_ACTIVITY_KIND_KERNEL=[
            kernel("soon", 2),  # type: ignore[arg-type]
            kernel(9, 4),
            kernel(10, 11, streamId=2**40),
            kernel(12, 13, demangledName="x", shortName=None),
        ]
    )

    reading = read(path)

    assert [(e["raw_start_ns"], e["duration_ns"], e["stream"], e["name"]) for e in reading.events] == [
        (9, 0, 7, "void gemm<float>(float*)"),
        (10, 1, None, "void gemm<float>(float*)"),
        (12, 1, 7, "kernel"),
    ]
    assert (reading.summary.event_count, reading.summary.stored_count) == (4, 3)
    assert reading.issue("nsys_event_without_timestamp").lost_events == 1
    assert {"nsys_negative_duration", "nsys_out_of_range"} <= set(reading.codes)


def test_tables_that_nothing_reads_are_counted(export: Export) -> None:
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)], SCHED_EVENTS=[{"start": 1}, {"start": 2}])

    issue = read(path).issue("nsys_tables_not_read")

    assert issue.count == 2
    assert "SCHED_EVENTS 2" in issue.detail


def test_what_is_of_no_rank_is_counted(export: Export) -> None:
    # given a call and a range of a process without a device, a call listed twice, and the name of a thread
    path = export(
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)],
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(0, 1), call(0, 1, eventClass=67), call(3, 4, 9)],
        NVTX_EVENTS=[nvtx("load", 0, 9, globalTid=process(9) + 9), nvtx("main", 0, None, eventType=39)],
    )

    reading = read(path)

    assert [event["name"] for event in reading.events] == ["cudaLaunchKernel", "void gemm<float>(float*)"]
    issue = reading.issue("nsys_rows_of_no_rank")
    assert issue.count == 4
    assert "CUPTI_ACTIVITY_KIND_RUNTIME 2, NVTX_EVENTS 2" in issue.detail


def test_a_table_without_processes_is_of_the_one_that_used_its_device(export: Export) -> None:
    # given kernels of devices 0 and 1 without their processes, which the copies state, of device 0 alone
    bare = [{"start": 5, "end": 6, "deviceId": n, "streamId": 7, "shortName": 1} for n in (0, 1)]
    copy = {"start": 8, "end": 9, "deviceId": 0, "streamId": 7, "globalPid": process(7), "copyKind": 1, "bytes": 4}
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=bare, CUPTI_ACTIVITY_KIND_MEMCPY=[copy])

    parts = NsysSource().parts(path)

    assert parts == ["device 0, process 7", "device 1"]
    assert [[e["category"] for e in read(path, part).events] for part in parts] == [
        ["kernel", "gpu_memcpy"],
        ["kernel"],
    ]


def test_kernels_without_a_process_are_no_other_processs(export: Export) -> None:
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2), kernel(5, 6, globalPid=None)])

    parts = NsysSource().parts(path)

    assert [[e["raw_start_ns"] for e in read(path, part).events] for part in parts] == [[5], [1]]


def test_a_process_with_the_largest_number_there_is_has_its_threads(export: Export) -> None:
    last = 2**63 - 1
    path = export(
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(1, 2, globalTid=last)],
        ThreadNames=[{"nameId": 4, "globalTid": last}],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(3, 4, globalPid=last)],
    )

    assert [event["category"] for event in read(path).events] == ["cuda_runtime", "kernel"]


def test_a_view_in_the_place_of_a_table_is_not_read(export: Export) -> None:
    # given an endless view of a stranger
    path = export(NVTX_EVENTS=[nvtx("step 1", 0, 9)])
    with sqlite3.connect(path) as connection:
        endless = (
            "WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start, 2 AS end FROM n"
        )
        connection.execute(f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless}")

    assert [event["name"] for event in read(path).events] == ["step 1"]


def test_a_compressed_export_is_read_and_a_damaged_one_refused(export: Export, tmp_path: Path) -> None:
    whole = export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(n, n + 1) for n in range(5000)]).read_bytes()
    (tmp_path / "report.sqlite.gz").write_bytes(gzip.compress(whole))
    (tmp_path / "torn.sqlite").write_bytes(whole[: len(whole) // 3])

    assert read(tmp_path / "report.sqlite.gz").summary.event_count == 5000
    with pytest.raises(InputUnusableError, match="damaged"):
        read(tmp_path / "torn.sqlite")


def test_other_sqlite_files_are_none_of_ours(tmp_path: Path, export: Export) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE history (url TEXT)")

    assert not NsysSource().recognises((tmp_path / "other.db").read_bytes())
    assert NsysSource().recognises(export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)]).read_bytes())


def test_damage_that_sqlite_quotes_in_bytes_that_are_no_text_is_refused(export: Export) -> None:
    path = export(CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)])
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE StringIds", b"CREATE \xbb\xbbBLE StringIds"))

    with pytest.raises(InputUnusableError, match="damaged"):
        read(path)


def test_a_row_that_claims_gigabytes_is_damage(tmp_path: Path) -> None:
    # given a table whose only row says in its first five bytes that it holds 4 GiB; SQLite asks for them in one piece
    path = tmp_path / "report.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute("CREATE TABLE NVTX_EVENTS (text)")
        connection.execute("INSERT INTO NVTX_EVENTS VALUES ('step 1')")
        connection.commit()
    file = bytearray(path.read_bytes())
    row, page = bytes.fromhex("ffffffff6e6b2035270001000007") + b"\x07" * 40, file[512:]
    page[5:7] = page[8:10] = (400).to_bytes(2, "big")  # where rows begin, and where this one does
    page[400 : 400 + len(row)] = row
    path.write_bytes(file[:512] + page)

    with open_sqlite(path) as database, pytest.raises(InputUnusableError, match="damaged: there is no memory"):
        list(database.rows("SELECT text FROM NVTX_EVENTS"))
