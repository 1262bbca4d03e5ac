"""A folder of Parquet files says what the SQLite file of the same report says; nothing in it is trusted or lost."""

import os
import tarfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.sources.nsys_exports import EPOCH, STRINGS, Export, call, export, kernel, nvtx, process, read
from tests.sources.reading import Reading
from traceforge.errors import InputUnusableError
from traceforge.files import content_hash, find_files, read_head, size_bytes
from traceforge.sources.nsys import NsysSource

__all__ = ["export"]
Rows = list[dict[str, Any]]
TABLES: dict[str, Rows] = {
    "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": EPOCH}],
    "TARGET_INFO_SYSTEM_ENV": [{"name": "Hostname", "value": "node7"}],
    "CUPTI_ACTIVITY_KIND_RUNTIME": [call(100, 110), call(120, 130, 8, eventClass=1, nameId=5)],
    "NVTX_EVENTS": [
        nvtx("aten::mm, op_id = 12, sizes = [[2, 3], [3, 4]]", 90, 140),
        nvtx(None, 95, 99, textId=4),
        nvtx("here", 97, None, eventType=34),
    ],
    "CUPTI_ACTIVITY_KIND_KERNEL": [kernel(150, 190), kernel(160, 170, 8, deviceId=1, demangledName=None)],
    "SCHED_EVENTS": [{"start": 1}],
}
UNSIGNED = {"globalPid": pl.UInt64, "globalTid": pl.UInt64, "eventType": pl.UInt32, "nameId": pl.UInt32}


def write(folder: Path, **tables: Rows) -> Path:
    """A folder as `nsys export --type parquetdir` writes it, with its types."""
    folder.mkdir(parents=True)
    strings = [{"id": number, "value": text} for number, text in STRINGS.items()]
    for name, rows in {"META_DATA_EXPORT": [{"name": "x", "value": "y"}], "StringIds": strings, **tables}.items():
        frame = pl.DataFrame(rows, infer_schema_length=None)
        types = [pl.col(column).cast(kind) for column, kind in UNSIGNED.items() if column in frame.columns]
        frame.with_columns(types).write_parquet(folder / f"{name}.parquet", compression="uncompressed")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "report_pqtdir", **TABLES)


def said(path: Path) -> list[object]:
    """All that each part of an export says."""
    return [(part, read(path, part).all_said) for part in NsysSource().parts(path)]


def test_each_table_holds_the_rows_of_the_sqlite_file(export: Export, folder: Path) -> None:
    assert said(folder) == said(export(**TABLES))
    assert [part for part, _ in map(tuple, said(folder))] == ["device 0, process 7", "device 1, process 8"]  # type: ignore[arg-type]


def test_the_folder_is_one_input_and_known_by_its_tables(folder: Path) -> None:
    (folder / "notes.txt").write_text("by hand")

    assert find_files([folder.parent]) == [folder, folder / "notes.txt"]
    assert NsysSource().recognises(read_head(folder))
    assert size_bytes(folder) == sum(file.stat().st_size for file in folder.glob("*.parquet"))


def test_another_row_is_another_content(folder: Path, tmp_path: Path) -> None:
    same = write(tmp_path / "same", **TABLES)
    other = write(tmp_path / "other", **(TABLES | {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel(150, 191)]}))

    assert content_hash(same) == content_hash(folder) != content_hash(other)


def test_a_folder_in_an_archive_is_read_alike(folder: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "job.tar.gz", "w:gz") as archive:
        archive.add(folder, "node7/report_pqtdir")

    (found,) = find_files([tmp_path / "job.tar.gz"])

    assert found == tmp_path / "job.tar.gz" / "node7" / "report_pqtdir"
    assert said(found) == said(folder)
    assert size_bytes(found) == size_bytes(folder)


def test_numbers_beyond_63_bits_are_kept_as_sqlite_keeps_them(tmp_path: Path) -> None:
    # given a process whose machine sets the highest bit, which Parquet's unsigned column holds as it is
    high = (1 << 63) + process(7)
    path = write(tmp_path / "r", CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2, globalPid=high)],
                 CUPTI_ACTIVITY_KIND_RUNTIME=[call(0, 1, globalTid=high + 7)])  # fmt: skip

    assert [event["name"] for event in read(path).events] == ["cudaLaunchKernel", "void gemm<float>(float*)"]


def test_a_damaged_table_is_told_and_the_others_are_read(folder: Path) -> None:
    table = folder / "NVTX_EVENTS.parquet"
    table.write_bytes(table.read_bytes()[:-9])

    reading = read(folder, "device 0, process 7")

    assert [event["category"] for event in reading.events] == ["cuda_runtime", "kernel"]
    assert reading.issue("nsys_unreadable_table").detail.endswith("(NVTX_EVENTS)")


def test_text_that_is_none_costs_its_column(folder: Path) -> None:
    table = folder / "TARGET_INFO_SYSTEM_ENV.parquet"
    table.write_bytes(table.read_bytes().replace(b"node7", b"no\xff\xfe7"))

    reading = read(folder, "device 0, process 7")

    assert reading.summary.host is None
    assert reading.issue("nsys_unreadable_table").detail.endswith("(TARGET_INFO_SYSTEM_ENV.value)")


def test_damage_within_a_table_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "r", CUPTI_ACTIVITY_KIND_KERNEL=[kernel(n, n + 1) for n in range(5000)])
    table = path / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    whole = table.read_bytes()
    table.write_bytes(whole[:4] + os.urandom(3000) + whole[3004:])

    with pytest.raises(InputUnusableError, match="damaged") as raised:
        read(path)
    assert "export" in str(raised.value.hint)


def test_a_folder_without_one_sound_table_is_refused(folder: Path) -> None:
    for table in folder.glob("*.parquet"):
        table.write_bytes(b"PAR1 is not enough PAR1")

    with pytest.raises(InputUnusableError, match="none of the Parquet files"):
        NsysSource().parts(folder)


@pytest.mark.parametrize("name", ["a'b", "all*", "what?", "list[0]", '"quoted"'])
def test_any_name_of_a_folder_is_only_a_name(tmp_path: Path, name: str) -> None:
    assert len(read(write(tmp_path / name, **TABLES), "device 0, process 7").events) > 0


def test_a_table_of_any_name_is_only_counted(folder: Path) -> None:
    hostile = 'x"; COPY StringIds TO stolen; --'
    pl.DataFrame({"start": [1, 2]}).write_parquet(folder / f"{hostile}.parquet")

    reading: Reading = read(folder, "device 0, process 7")

    assert f"{hostile} 2" in reading.issue("nsys_tables_not_read").detail
