"""Exports of Nsight Systems as tests write them: tables of SQLite with a few rows."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sources.reading import Reading
from traceforge.records import Batch, ReadOptions
from traceforge.sources.nsys import NsysSource

EPOCH = 1_700_000_000_000_000_000
MACHINE = 1 << 48
STRINGS = {
    1: "gemm",
    2: "void gemm<float>(float*)",
    3: "cudaLaunchKernel_v7000",
    4: "ncclAllReduce",
    5: "cuLaunchKernel",
}


Export = Callable[..., Path]


def process(pid: int) -> int:
    """`globalPid` of a process."""
    return MACHINE + (pid << 24)


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Writes an export: tables by name, each a list of rows as dicts."""

    def write(name: str = "report.sqlite", **tables: list[dict[str, Any]]) -> Path:
        path = tmp_path / name
        connection = sqlite3.connect(path)
        strings = [{"id": number, "value": text} for number, text in STRINGS.items()]
        for table, rows in {"META_DATA_EXPORT": [{"name": "x", "value": "y"}], "StringIds": strings, **tables}.items():
            columns = list(rows[0])
            connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", [tuple(row.values()) for row in rows])
        connection.commit()
        connection.close()
        return path

    return write


def kernel(start: int, end: int, pid: int = 7, **columns: object) -> dict[str, object]:
    plain = {
        "deviceId": 0,
        "streamId": 7,
        "correlationId": 5,
        "globalPid": process(pid),
        "demangledName": 2,
        "shortName": 1,
    }
    return {"start": start, "end": end, **plain, **columns}


def call(start: int, end: int, pid: int = 7, **columns: object) -> dict[str, object]:
    plain = {"eventClass": 0, "globalTid": process(pid) + pid, "correlationId": 5, "nameId": 3}
    return {"start": start, "end": end, **plain, **columns}


def nvtx(text: str | None, start: int, end: int | None, **columns: object) -> dict[str, object]:
    plain = {"eventType": 59, "globalTid": process(7) + 7, "textId": None, "domainId": 0}
    return {"start": start, "end": end, "text": text, **plain, **columns}


def read(path: Path, part: str | None = None) -> Reading:
    batches: list[Batch] = []
    return Reading(NsysSource().read(path, batches.append, ReadOptions(part=part)), batches)
