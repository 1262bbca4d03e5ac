"""Events of one process. In: tables of an export. Out: frames for `TimelineRows`, in bounded pieces.

Idea: each table is one query whose columns stand for Kineto's; names stay numbers of StringIds until a piece is
whole, so that each is looked up once. Rows without a start are counted, not kept. Of calls to the operating system
those of threads that call CUDA are kept: what else a process waits for tells nothing of its device. Calls to MPI are
annotations by their names, as where they were recorded as NVTX ranges.
Not handled: samples of stacks, scheduling, UCX's transfers, which are no time of the thread that asks for them (counted
as tables that are not read).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.range_names import range_said
from traceforge.reading.table_file import TableFile
from traceforge.reading.timeline_rows import COMPLETE, INSTANT, is_time
from traceforge.sources.nsys.parts import THREAD_BITS, ReportPart

PIECE_ROWS = 122_880  # a row group of DuckDB
_NO_STREAM = 2**32 - 1  # what CUPTI writes for synchronisation without a stream
_INT32 = (-(2**31), 2**31 - 1)
NVTX, KERNEL, RUNTIME = "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
# Columns that hold no number, by what they mean.
_NVTX_TEXTS = {"text": ("text", "text"), "payload": ("blob", "binaryData"), "payload_text": ("text", "jsonText")}
_THREAD_MASK = (1 << THREAD_BITS) - 1
_PUSH_POP, _START_END, _MARK = 59, 60, 34
_CUDA_RUNTIME, _CUDA_DRIVER = 0, 1
_VERSION = re.compile(r"_v\d+$")
_COPY_KINDS = {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH"}
_COPY_KINDS |= {10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD"}
_MEMORY_KINDS = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed", 5: "Device", 6: "Managed"}
_SYNC_KINDS = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}

Named = Callable[[TableFile, pl.DataFrame], pl.DataFrame]
"""Gives rows their category, name and record_function_id."""


@dataclass(frozen=True, slots=True)
class EventTable:
    """How the rows of one table become events.

    Attributes:
        table: of the export.
        columns: column of the export by what it means.
        is_device: on a stream of a device; else on a thread of the host.
        named: gives them their names.
        kinds: a column, and which of its values are events; other rows say something else.
        is_of_callers: of threads that call CUDA only.
    """

    table: str
    columns: dict[str, str]
    is_device: bool
    named: Named
    kinds: tuple[str, tuple[int, ...]] | None = None
    is_of_callers: bool = False


def events_of(database: TableFile, table: EventTable, part: ReportPart, issues: IssueLog) -> Iterator[pl.DataFrame]:
    """The rows of a table that are of one part, some at a time."""
    if not database.has(table.table, "start"):
        return
    said = [f'{database.integer(table.table, column)} AS "{name}"' for name, column in table.columns.items()]
    others = _NVTX_TEXTS if table.table == NVTX else {}
    said += [f'{getattr(database, kind)(table.table, column)} AS "{name}"' for name, (kind, column) in others.items()]
    where, parameters = _where(database, table, part)
    query = f"SELECT {', '.join(said)} FROM {table.table}{where}"
    texts = {name: pl.Binary if kind == "blob" else pl.String for name, (kind, _) in others.items()}
    schema = {**dict.fromkeys(table.columns, pl.Int64), **texts}
    for rows in database.pieces(query, parameters, PIECE_ROWS):
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        started = frame.filter(is_time("start")).with_columns(end=pl.when(is_time("end")).then(pl.col("end")))
        issues.add("event_without_timestamp", frame.height - started.height, lost_events=frame.height - started.height)
        yield _placed(table.named(database, started), part, issues, is_device=table.is_device)


def _where(database: TableFile, table: EventTable, part: ReportPart) -> tuple[str, list[int]]:
    """The rows of a table that are events of a part, as SQL with its parameters."""
    conditions, parameters = _of_part(database, table, part)
    if table.kinds and database.has(table.table, table.kinds[0]):
        conditions = [*conditions, f"{database.integer(table.table, table.kinds[0])} IN {table.kinds[1]}"]
    if table.is_of_callers:
        callers = f"(SELECT {database.integer(RUNTIME, 'globalTid')} FROM {RUNTIME})"
        is_known = database.has(RUNTIME, "globalTid") and database.has(table.table, "globalTid")
        own = f"{database.integer(table.table, 'globalTid')} IN {callers}"
        conditions = [*conditions, own if is_known else "1 = 0"]
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), parameters


def _of_part(database: TableFile, table: EventTable, part: ReportPart) -> tuple[list[str], list[int]]:
    """Which rows are of a part, as conditions with their parameters; none where nothing tells them apart."""
    if not (table.is_device or part.has_host):
        return ["1 = 0"], []
    if part.process is not None:
        if table.is_device and database.has(table.table, "globalPid"):
            return [f"{database.integer(table.table, 'globalPid')} = ?"], [part.process]
        if not table.is_device and database.has(table.table, "globalTid"):
            thread = database.integer(table.table, "globalTid")
            return [f"{thread} BETWEEN ? AND ?"], list(part.threads)
    if part.device is not None and table.is_device and database.has(table.table, "deviceId"):
        is_nobodys = f"{database.integer(table.table, 'globalPid')} IS NULL"
        nobodys = [is_nobodys] if database.has(table.table, "globalPid") else []
        return [f"{database.integer(table.table, 'deviceId')} = ?", *nobodys], [part.device]
    return [], []


def launches_of(database: TableFile, part: ReportPart, correlations: pl.Series) -> pl.DataFrame:
    """Thread, start and correlation of a part's calls to CUDA that have some correlations."""
    table = TABLES[0]
    columns = [database.integer(RUNTIME, name) for name in ("globalTid", "start", "correlationId")]
    where, parameters = _where(database, table, part)
    schema = {"thread": pl.Int64, "start": pl.Int64, "correlation": pl.Int64}
    found = [pl.DataFrame(schema=schema)]
    if database.has(RUNTIME, "start"):
        for rows in database.pieces(f"SELECT {', '.join(columns)} FROM {RUNTIME}{where}", parameters, PIECE_ROWS):
            frame = pl.DataFrame(rows, schema=schema, orient="row")
            found.append(frame.filter(pl.col("correlation").is_in(correlations.implode())))
    every = pl.concat(found).sort("start").unique("correlation", keep="first", maintain_order=True)
    return every.with_columns(thread=_thread())


def _thread() -> pl.Expr:
    return (pl.col("thread") & _THREAD_MASK).cast(pl.String).fill_null("main")


def unread_rows(database: TableFile, parts: Sequence[ReportPart]) -> dict[str, int]:
    """By table, rows in no part: of processes without a device or times, repeated calls, names of threads, domains."""
    left = {}
    for table in TABLES:
        if database.has(table.table, "start"):
            read = sum(database.rows(f"SELECT COUNT(*) FROM {table.table}{where}", parameters)[0][0]
                       for where, parameters in (_where(database, table, part) for part in parts))  # fmt: skip
            left[table.table] = database.count(table.table) - read
        else:
            left[table.table] = database.count(table.table)
    return left


def _placed(frame: pl.DataFrame, part: ReportPart, issues: IssueLog, *, is_device: bool) -> pl.DataFrame:
    """Rows with duration and track: a stream of a device, or a thread of the process."""
    backwards = frame.filter((pl.col("end") < pl.col("start")) & (pl.col("phase") != INSTANT)).height
    issues.add("negative_duration", backwards)
    duration = (pl.col("end") - pl.col("start")).clip(lower_bound=0)
    timed = frame.with_columns(
        duration_ns=pl.when(pl.col("phase") == INSTANT).then(None).otherwise(duration), raw_start_ns="start"
    )
    if not is_device:
        process = pl.lit(None if part.pid is None else str(part.pid), dtype=pl.String)
        return timed.with_columns(process=process.fill_null("host"), thread=_thread())
    timed = timed.with_columns(pl.col("device").replace(part.gpus)) if part.gpus else timed
    for name in ("device", "stream"):
        outside = timed.filter(~pl.col(name).is_between(*_INT32) & (pl.col(name) != _NO_STREAM)).height
        issues.add("out_of_range", outside)
        timed = timed.with_columns(pl.when(pl.col(name).is_between(*_INT32)).then(pl.col(name)).alias(name))
    stream = pl.format("stream {}", pl.col("stream"))
    return timed.with_columns(process=pl.col("device").cast(pl.String).fill_null("device"), thread=stream)


def _lookup(database: TableFile, numbers: pl.Series) -> pl.Series:
    """The texts of StringIds, NULL where there is none."""
    wanted = numbers.drop_nulls().unique().to_list()
    if not wanted:
        return pl.Series(numbers.name, [None] * len(numbers), dtype=pl.String)
    texts = database.texts(wanted)
    found = [texts.get(number) for number in wanted]
    return numbers.replace_strict(wanted, found, default=None, return_dtype=pl.String)


def _kernels(database: TableFile, frame: pl.DataFrame) -> pl.DataFrame:
    whole, short = _lookup(database, frame["demangled"]), _lookup(database, frame["short"])
    name = pl.select(pl.coalesce(whole, short, pl.lit("kernel"))).to_series()
    return _said(frame, "kernel", name)


def _graphs(_database: TableFile, frame: pl.DataFrame) -> pl.DataFrame:
    return _said(frame, "kernel", pl.Series(["CUDA graph (kernels not recorded)"] * frame.height, dtype=pl.String))


def _copies(_database: TableFile, frame: pl.DataFrame) -> pl.DataFrame:
    texts = [_copy_name(*row) for row in frame.select("kind", "source", "target").rows()]
    return _said(frame, "gpu_memcpy", pl.Series(texts, dtype=pl.String))


def _copy_name(kind: int | None, source: int | None, target: int | None) -> str:
    """A copy's name as Kineto writes it."""
    ends = f" ({_memory(source)} -> {_memory(target)})" if source is not None else ""
    return f"Memcpy {_COPY_KINDS.get(kind or 0, 'unknown')}{ends}"


def _memory(kind: int | None) -> str:
    return "Unknown" if kind is None else _MEMORY_KINDS.get(kind, "Unknown")


def _sets(_database: TableFile, frame: pl.DataFrame) -> pl.DataFrame:
    texts = [f"Memset ({_MEMORY_KINDS.get(kind, 'Device')})" for kind in frame["kind"].to_list()]
    return _said(frame, "gpu_memset", pl.Series(texts, dtype=pl.String))


def _synchronisations(_database: TableFile, frame: pl.DataFrame) -> pl.DataFrame:
    texts = [_SYNC_KINDS.get(kind, "Sync") for kind in frame["kind"].to_list()]
    return _said(frame, "cuda_sync", pl.Series(texts, dtype=pl.String))


def _calls(database: TableFile, frame: pl.DataFrame) -> pl.DataFrame:
    names = [None if name is None else _VERSION.sub("", name) for name in _lookup(database, frame["name_id"])]
    driver = pl.Series([bool(name and re.match(r"cu[A-Z]", name)) for name in names], dtype=pl.Boolean)
    category = pl.select(pl.when(driver).then(pl.lit("cuda_driver")).otherwise(pl.lit("cuda_runtime"))).to_series()
    return _said(frame, category, pl.Series([name or "call" for name in names], dtype=pl.String))


def _system_calls(database: TableFile, frame: pl.DataFrame) -> pl.DataFrame:
    return _said(frame, "os_runtime", _lookup(database, frame["name_id"]).fill_null("call"))


def _ranges(database: TableFile, frame: pl.DataFrame) -> pl.DataFrame:
    registered = _lookup(database, frame["name_id"])
    # Before 2022 what is missing is an empty text: no column could be NULL.
    written = frame["text"].replace("", None)
    texts = pl.select(pl.coalesce(written, registered.replace("", None), pl.lit("range"))).to_series().to_list()
    said = {text: range_said(text) for text in set(texts)}
    named = _said(
        frame,
        pl.Series([said[text][0] for text in texts], dtype=pl.String),
        pl.Series([said[text][1] for text in texts], dtype=pl.String),
    )
    marks = (pl.col("event_type") == _MARK) | pl.col("end").is_null()
    return named.with_columns(
        phase=pl.when(marks).then(pl.lit(INSTANT)).otherwise(pl.lit(COMPLETE)),
        record_function_id=pl.Series([said[text][2] for text in texts], dtype=pl.Int64),
        shapes=pl.Series([said[text][3] for text in texts], dtype=pl.String),
    )


def _mpi_calls(database: TableFile, frame: pl.DataFrame) -> pl.DataFrame:
    """Calls by their names; those that had not ended when the recording did are instants."""
    named = _said(frame, "user_annotation", _lookup(database, frame["name_id"]).fill_null("MPI call"))
    is_open = pl.col("end").is_null()
    return named.with_columns(phase=pl.when(is_open).then(pl.lit(INSTANT)).otherwise(pl.lit(COMPLETE)))


def _said(frame: pl.DataFrame, category: str | pl.Series, name: pl.Series) -> pl.DataFrame:
    given = pl.lit(category) if isinstance(category, str) else category
    return frame.with_columns(given.alias("category"), name.alias("name"), pl.lit(COMPLETE).alias("phase"))


_TIMES = {"start": "start", "end": "end"}
_ON_DEVICE = {**_TIMES, "device": "deviceId", "stream": "streamId", "correlation": "correlationId"}
_ON_HOST = {**_TIMES, "thread": "globalTid"}
_KIND = "CUPTI_ACTIVITY_KIND_"

TABLES = (
    EventTable(
        RUNTIME,
        {**_ON_HOST, "correlation": "correlationId", "name_id": "nameId"},
        is_device=False,
        named=_calls,
        # A third class repeats calls whose stack was taken.
        kinds=("eventClass", (_CUDA_RUNTIME, _CUDA_DRIVER)),
    ),
    EventTable(
        NVTX,
        {**_ON_HOST, "event_type": "eventType", "name_id": "textId"},
        is_device=False,
        named=_ranges,
        kinds=("eventType", (_PUSH_POP, _START_END, _MARK)),
    ),
    *(
        EventTable(f"MPI_{kind}_EVENTS", {**_ON_HOST, "name_id": "textId"}, is_device=False, named=_mpi_calls)
        for kind in ("P2P", "COLLECTIVES", "START_WAIT", "OTHER")
    ),
    EventTable("OSRT_API", {**_ON_HOST, "name_id": "nameId"}, is_device=False, named=_system_calls, is_of_callers=True),
    EventTable(
        KERNEL,
        {**_ON_DEVICE, "demangled": "demangledName", "short": "shortName"},
        is_device=True,
        named=_kernels,
    ),
    EventTable(
        f"{_KIND}MEMCPY",
        {**_ON_DEVICE, "size_bytes": "bytes", "kind": "copyKind", "source": "srcKind", "target": "dstKind"},
        is_device=True,
        named=_copies,
    ),
    EventTable(f"{_KIND}MEMSET", {**_ON_DEVICE, "size_bytes": "bytes", "kind": "memKind"}, is_device=True, named=_sets),
    EventTable(f"{_KIND}GRAPH_TRACE", _ON_DEVICE, is_device=True, named=_graphs),
    EventTable(f"{_KIND}SYNCHRONIZATION", {**_ON_DEVICE, "kind": "syncType"}, is_device=True, named=_synchronisations),
)
