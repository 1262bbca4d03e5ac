"""One part of an export. In: a path, perhaps the name of a part. Out: rows of raw.profile, raw.event, raw.track.

Idea: times in an export count from the start of its session, which it states in UTC; so they become the host's wall
clock, as in Kineto's files. What tables hold that nothing here reads is counted, table by table.
Not handled: the monotonic clock of newer exports, which would align reports of one host more exactly than their UTC.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.files import size_bytes
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.table_file import TableFile
from traceforge.reading.timeline_rows import LATEST_NS, TimelineRows
from traceforge.records import Batch, ReadOptions, SourceSummary
from traceforge.sources.nsys.events import KERNEL, NVTX, TABLES, events_of, launches_of, unread_rows
from traceforge.sources.nsys.gpu_metrics import TABLE as GPU_METRICS
from traceforge.sources.nsys.gpu_metrics import emit_gpu_metrics
from traceforge.sources.nsys.launcher import stated_job
from traceforge.sources.nsys.nccl_calls import NcclCalls
from traceforge.sources.nsys.nccl_payloads import PayloadReader, are_described
from traceforge.sources.nsys.opening import open_export
from traceforge.sources.nsys.parts import GPUS_SEEN, MACHINE_BITS, THREAD_BITS, ReportPart, parts_of, stated_rank

KIND = "nsys"
_MEANINGS = {
    "no_events": ("warning", "the export holds no kernel, call or range"),
    "event_without_timestamp": ("warning", "a row without a start that is a time is not kept"),
    "negative_duration": ("warning", "a row that ends before it starts was given the duration 0"),
    "out_of_range": ("warning", "a number does not fit its column and became NULL"),
    "no_names": ("warning", "the export holds no StringIds: kernels and calls have no names"),
    "no_session_start": ("info", "the export states no start of its session: times count from an unknown moment"),
    "no_launches": ("info", "the export holds no CUDA calls: what the host did is not recorded"),
    "launches_not_told": (
        "warning",
        "work of a device names no process, and several called CUDA: what launched it is not known",
    ),
    "graphs_as_one": (
        "info",
        "CUDA graphs were recorded as one row each, without their kernels; record with --cuda-graph-trace=node",
    ),
    "rows_of_no_rank": (
        "info",
        "rows of processes without a device, system calls of threads that never call CUDA, calls listed twice, names",
    ),
    "tables_not_read": ("info", "tables of the export that nothing here reads"),
    "payload_unreadable": ("warning", "payloads of NCCL's ranges fit no layout that the export states"),
    "payloads_not_exported": (
        "info",
        "sizes and communicators of NCCL's calls were recorded, but left out of the export; use --include-blobs=true",
    ),
    "unreadable_table": ("warning", "a Parquet file is damaged, or a column declared as text holds other bytes"),
}
_NAMES = frozenset(
    {"StringIds", "ThreadNames", "PROCESSES", "ProcessStreams", "UnwindMethodType", "MPI_RANKS", "MPI_COMMUNICATORS"}
)
_NO_EVENTS = (
    "ENUM_",
    "META_DATA_",
    "EXPORT_META",
    "TARGET_INFO_",
    "ANALYSIS_",
    "NVTX_PAYLOAD_",
    "DIAGNOSTIC_",
    "sqlite_",
)
_DEVICE = {
    "id": "cuDevice",
    "name": "name",
    "totalGlobalMem": "totalMemory",
    "computeMajor": "computeMajor",
    "computeMinor": "computeMinor",
    "numSms": "smCount",
    "uuid": "uuid",
    "pciBusId": "busLocation",
}
_DEVICE_TEXTS = frozenset({"name", "uuid", "busLocation"})


def part_names(path: Path) -> list[str]:
    """Names of the parts of an export; what `read_part` takes.

    Raises:
        InputUnusableError: it is damaged.
    """
    with open_export(path) as database:
        return [part.name for part in parts_of(database)]


def read_part(path: Path, name: str | None, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
    """Read one part, or the only one.

    Args:
        name: one of `part_names`; None where there is only one.

    Raises:
        InputUnusableError: nothing of the file can be used.
    """
    issues = IssueLog(_MEANINGS, f"{KIND}_")
    with open_export(path) as database:
        parts = parts_of(database)
        part = next((part for part in parts if name in (None, part.name)), None)
        if part is None:
            raise InputUnusableError(f"the export has no part {name!r}", where=str(path))
        rows = TimelineRows(emit)
        base_ns = _session_start_ns(database)
        issues.add("no_session_start", int(base_ns is None))
        issues.add("no_names", int(not database.has("StringIds", "id", "value")))
        issues.add("launches_not_told", int(not part.has_host))
        calls = NcclCalls(PayloadReader(database), issues)
        for table in TABLES:
            before = rows.count
            for frame in events_of(database, table, part, issues):
                _emit_shapes(frame, rows.count, emit)
                if table.table == NVTX:
                    calls.take_ranges(frame, rows.count)
                elif table.table == KERNEL:
                    calls.take_kernels(frame, rows.count)
                rows.add(frame.with_columns(pl.col("raw_start_ns") + (base_ns or 0)))
            if table.table.endswith("GRAPH_TRACE"):
                issues.add("graphs_as_one", rows.count - before)
            if table.table.endswith("RUNTIME"):
                issues.add("no_launches", int(part.has_host and rows.count == before))
        for batch in calls.batches(lambda correlations: launches_of(database, part, correlations)):
            emit(batch)
        issues.add("payloads_not_exported", int(not calls.are_read and are_described(database)))
        _name_threads(database, part, rows)
        rows.finish()
        host = _host(database, part)
        if part is parts[0]:
            devices = {device["id"]: device for device in _devices(database) if "id" in device}
            sampled = emit_gpu_metrics(database, emit, host=host, base_ns=base_ns or 0, devices=devices)
            _note_unread(database, parts, issues, {GPU_METRICS: sampled})
            issues.add("unreadable_table", len(database.unreadable), because=", ".join(database.unreadable[:12]))
        rank, world_size = stated_rank(database, part, is_alone=len(parts) == 1)
        if rank is None:
            rank, world_size = calls.job_rank(len(parts))
        emit(Batch("raw.profile", _profile(database, part, base_ns or 0, rank, world_size, host)))
        options.report_progress(size_bytes(path) if part is parts[-1] else 0)
    issues.add("no_events", int(not rows.count))
    return SourceSummary(KIND, rank, host, world_size, rows.count + issues.lost_events, rows.count, tuple(issues))


def _emit_shapes(frame: pl.DataFrame, first: int, emit: Callable[[Batch], None]) -> None:
    """Hand over the shapes that ranges of PyTorch name (`emit_nvtx(record_shapes=True)`); events count from `first`."""
    if "shapes" in frame.columns:
        numbered = frame.select("shapes").with_columns(
            event_id=pl.int_range(first, first + frame.height, dtype=pl.Int64)
        )
        shaped = numbered.drop_nulls("shapes")
        if shaped.height:
            emit(Batch("raw.operation_input", shaped))


def _session_start_ns(database: TableFile) -> int | None:
    """Start of the session, UTC ns since the epoch."""
    table = "TARGET_INFO_SESSION_START_TIME"
    if not database.has(table, "utcEpochNs"):
        return None
    found = database.rows(f"SELECT {database.integer(table, 'utcEpochNs')} FROM {table} LIMIT 1")
    return found[0][0] if found and found[0][0] is not None and 0 <= found[0][0] < LATEST_NS else None


def _host(database: TableFile, part: ReportPart) -> str | None:
    """The host of a part: of several that the report states that of its machine, or none."""
    table = "TARGET_INFO_SYSTEM_ENV"
    if not database.has(table, "name", "value"):
        return None
    columns = f"{database.integer(table, 'globalVid')}, {database.text(table, 'value')}"
    found = database.rows(f"SELECT DISTINCT {columns} FROM {table} WHERE name = 'Hostname' LIMIT 1024")
    named = [(number, name) for number, name in found if name]
    own = [name for number, name in named if number is not None and number >> MACHINE_BITS == part.machine]
    hosts = set(own) or {name for _, name in named}
    return hosts.pop() if len(hosts) == 1 else None


def _name_threads(database: TableFile, part: ReportPart, rows: TimelineRows) -> None:
    if part.process is None or not database.has("ThreadNames", "nameId", "globalTid"):
        return
    name, thread = database.integer("ThreadNames", "nameId"), database.integer("ThreadNames", "globalTid")
    found = database.rows(
        f"SELECT {name}, {thread} FROM ThreadNames WHERE {thread} BETWEEN ? AND ?",
        part.threads,
    )
    texts = database.texts([number for number, _ in found])
    for number, thread_id in found:
        if thread_id is not None and (text := texts.get(number)):
            rows.name_thread(str(part.pid), str(thread_id & ((1 << THREAD_BITS) - 1)), text)


def _note_unread(database: TableFile, parts: Sequence[ReportPart], issues: IssueLog, partly: Mapping[str, int]) -> None:
    """Count the rows that could be events and are not read, by table; once a file.

    Args:
        partly: of tables that are read in part, how many rows were.
    """
    read = {table.table for table in TABLES}
    left = [
        (table, database.count(table) - partly.get(table, 0))
        for table in sorted(database.columns)
        if table not in read | _NAMES and not table.startswith(_NO_EVENTS)
    ]
    others = {table: count for table, count in unread_rows(database, parts).items() if count > 0}
    issues.add("rows_of_no_rank", sum(others.values()), because=", ".join(f"{name} {n}" for name, n in others.items()))
    held = [(table, count) for table, count in left if count]
    if held:
        because = ", ".join(f"{table} {count}" for table, count in held[:12])
        issues.add("tables_not_read", sum(count for _, count in held), because=because)


def _profile(
    database: TableFile, part: ReportPart, base_ns: int, rank: int | None, world_size: int | None, host: str | None
) -> pl.DataFrame:
    devices = _devices(database)
    own = next((device for device in devices if device.get("id") == part.gpu), devices[0] if devices else {})
    metadata = {
        "deviceProperties": [own] if own else [],
        "product": _product(database),
        "part": part.name,
        "process": part.pid,
        **({"job": job} if (job := stated_job(database)) else {}),
    }
    row = {
        "schema_version": _schema_version(database),
        "base_time_ns": base_ns,
        "rank": rank,
        "world_size": world_size,
        "host_name": host,
        "device_name": own.get("name"),
        "metadata": json.dumps(metadata),
    }
    schema = {"schema_version": pl.Int32, "base_time_ns": pl.Int64, "rank": pl.Int32, "world_size": pl.Int32}
    texts = dict.fromkeys(("host_name", "device_name", "metadata"), pl.String)
    return pl.DataFrame([row], schema={**schema, **texts}, orient="row")


def _devices(database: TableFile) -> list[dict[str, Any]]:
    """Devices in the words of Kineto's deviceProperties."""
    table = "TARGET_INFO_GPU"
    if not database.has(table):
        return []
    # Of the two numbers the host's, where the export says which of the host's GPUs a process calls by CUDA's.
    number = "cuDevice" if database.has(table, "cuDevice") and not database.count(GPUS_SEEN) else "id"
    columns = {**_DEVICE, "id": number}
    read = [
        database.text(table, name) if name in _DEVICE_TEXTS else database.integer(table, name)
        for name in columns.values()
    ]
    rows = database.rows(f"SELECT {', '.join(read)} FROM {table} LIMIT 1024")
    return [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in rows]


def _product(database: TableFile) -> dict[str, str]:
    """What wrote the export."""
    found: dict[str, str] = {}
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        if database.has(table, "name", "value"):
            value = database.text(table, "value")
            wanted = "('EXPORT_PRODUCT_NAME', 'EXPORT_PRODUCT_VERSION', 'EXPORT_SCHEMA_VERSION')"
            found |= {
                str(name): str(text)
                for name, text in database.rows(f"SELECT name, {value} FROM {table} WHERE name IN {wanted}")
            }
    return found


def _schema_version(database: TableFile) -> int | None:
    major = _product(database).get("EXPORT_SCHEMA_VERSION", "").partition(".")[0]
    return int(major) if major.isdigit() and len(major) < 6 else None
