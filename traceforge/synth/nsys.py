"""Exports of Nsight Systems. In: a job that was run. Out: SQLite files as `nsys export --type sqlite` writes them, or
folders of Parquet files as `--type parquetdir` does.

A file holds the ranks of one host, each a process with its device. It says what PyTorch's own trace of the job says, as
far as Nsight Systems records it: no groups, sizes or peers of collectives, steps as NVTX ranges `step N`. Not written:
what a real report holds besides (samples of stacks, scheduling, GPU metrics), payloads of NCCL's ranges.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from traceforge.synth.kineto import trace_text
from traceforge.synth.scenario import SimulatedJob

_MACHINE = 1 << 48
_THREAD_BITS = 24
_EPOCH_NS = 1_735_689_600_000_000_000
_SESSION_NS = 5_000_000_000  # into what the Kineto files call their base time
_STEP = "ProfilerStep#"
_COPIES = {"HtoD": 1, "DtoH": 2, "DtoD": 8}
_MEMORY = {"Pageable": 0, "Pinned": 1, "Device": 2}
_UNSIGNED = ("globalTid", "globalPid", "globalVid")  # in Parquet
_SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, cuDevice INTEGER,
  computeMajor INTEGER, computeMinor INTEGER);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
  bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
  globalTid INTEGER, textId INTEGER, domainId INTEGER);
"""


def write_reports(
    job: SimulatedJob, folder: Path, left_out: frozenset[int] = frozenset(), *, as_parquet: bool = False
) -> None:
    """Write `HOST.sqlite` for each host of a job.

    Args:
        left_out: ranks that were not recorded.
        as_parquet: write a folder `HOST_pqtdir` in the place of each file.
    """
    cluster = job.scenario.cluster
    hosts: dict[str, list[int]] = {}
    for rank in range(cluster.ranks):
        hosts.setdefault(cluster.host_of(rank), []).extend([rank] if rank not in left_out else [])
    for host, ranks in hosts.items():
        if ranks:
            # One file a rank where ranks are of several hosts: nothing in a report of many says who they are.
            groups = [(host, ranks)] if len(hosts) == 1 else [(f"rank{one}", [one]) for one in ranks]
            for name, members in groups:
                report = folder / f"{name}.sqlite"
                write_report(job, members, report)
                if as_parquet:
                    write_parquet(report, folder / f"{name}_pqtdir")
                    report.unlink()


def write_report(job: SimulatedJob, ranks: Sequence[int], path: Path) -> None:
    """Write one file that holds some ranks of one host."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    try:
        connection.executescript(_SCHEMA)
        report = _Report(connection)
        traces = [json.loads(trace_text(job, rank), parse_float=Decimal) for rank in ranks]
        report.add_head(traces[0], job.scenario.cluster.devices)
        for rank, trace in zip(ranks, traces, strict=True):
            report.add_process(2_000 + rank, trace["traceEvents"])
        report.add_strings()
        connection.commit()
    finally:
        connection.close()


def write_parquet(report: Path, folder: Path) -> None:
    """Write the tables of a SQLite file that have rows as Parquet files of the same names."""
    import polars as pl

    folder.mkdir(exist_ok=True)
    connection = sqlite3.connect(report)
    try:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = connection.execute(f"SELECT * FROM {table}")
            columns = [column[0] for column in cursor.description]
            frame = pl.DataFrame(cursor.fetchall(), schema=columns, orient="row", infer_schema_length=None)
            unsigned = [pl.col(name).cast(pl.UInt64) for name in columns if name in _UNSIGNED]
            if frame.height:
                frame.with_columns(unsigned).write_parquet(folder / f"{table}.parquet")
    finally:
        connection.close()


class _Report:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._strings: dict[str, int] = {}

    def _id(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings) + 1)

    def _insert(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def add_head(self, trace: Mapping[str, Any], devices: int) -> None:
        device = trace["deviceProperties"][0]
        own = (device["name"], device["totalGlobalMem"], device["numSms"])
        self._insert("TARGET_INFO_GPU", [(number, *own, number, 9, 0) for number in range(devices)])
        self._insert("TARGET_INFO_SESSION_START_TIME", [(_EPOCH_NS + _SESSION_NS, None, None)])
        self._insert("TARGET_INFO_SYSTEM_ENV", [(_MACHINE, "Local", "Hostname", 2, trace["host_name"])])
        said = [
            ("PRODUCT_NAME", "NVIDIA Nsight Systems"),
            ("PRODUCT_VERSION", "2024.5.1.113"),
            ("SCHEMA_VERSION", "3.13.1"),
        ]
        self._insert("META_DATA_EXPORT", [(f"EXPORT_{name}", value) for name, value in said])

    def add_process(self, pid: int, events: Sequence[Mapping[str, Any]]) -> None:
        process = _MACHINE + (pid << _THREAD_BITS)
        rows: dict[str, list[tuple[object, ...]]] = {"RUNTIME": [], "KERNEL": [], "MEMCPY": [], "NVTX": []}
        for event in events:
            if event["ph"] == "X":
                table, row = self._row(event, process, process + pid)
                rows[table].append(row)
        for table, own in rows.items():
            self._insert("NVTX_EVENTS" if table == "NVTX" else f"CUPTI_ACTIVITY_KIND_{table}", sorted(own))
        self._insert("ThreadNames", [(self._id("python"), 20, process + pid)])

    def _row(self, event: Mapping[str, Any], process: int, thread: int) -> tuple[str, tuple[object, ...]]:
        """The table of an event, and its row."""
        start = int(event["ts"] * 1000) - _SESSION_NS
        end, args, name = start + int(event["dur"] * 1000), event["args"], event["name"]
        match event["cat"]:
            case "cuda_runtime":
                return "RUNTIME", (start, end, 0, thread, args.get("correlation"), self._id(f"{name}_v7000"), 0, None)
            case "kernel":
                launched = (args["device"], 1, args["stream"], args["correlation"], process)
                return "KERNEL", (start, end, *launched, self._id(name), self._id(name.partition("(")[0]), None)
            case "gpu_memcpy":
                launched = (args["device"], 1, args["stream"], args["correlation"], process)
                kind = next((number for text, number in _COPIES.items() if text in name), 8)
                ends = [_MEMORY[text] for text in name.partition("(")[2].rstrip(")").split(" -> ")]
                return "MEMCPY", (start, end, *launched, args.get("bytes", 0), kind, *ends)
            case "cpu_op":
                text = f"{name}, op_id = {args['Record function id']}"
                return "NVTX", (start, end, 59, text, thread, None, 0)
            case _:
                text = f"step {name.removeprefix(_STEP)}" if name.startswith(_STEP) else name
                return "NVTX", (start, end, 59, text, thread, None, 0)

    def add_strings(self) -> None:
        self._insert("StringIds", [(number, text) for text, number in self._strings.items()])
