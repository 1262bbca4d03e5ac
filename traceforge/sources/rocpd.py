"""`rocpd` databases of rocprofv3 (ROCm 7 on). In: an SQLite file. Out: rows of raw.profile and raw.event.

Idea: tables of one process share a suffix; kernels, copies and regions (HIP, HSA, RCCL and marker calls) become the
events that Kineto would have written, joined by the correlation that the SDK calls the stack of their event.
By the schemas 3.0 to 4.1 of rocprofiler-sdk's source code, with fixtures by hand: no public file was known. From 4.0 on
a record names a track, which says where it ran; in 4.0 alone times stand in a table of their own.
Not handled: counters, samples and allocations (counted); the databases of rocmProfileData, which share some names.
"""

import json
import re
from collections.abc import Callable, Sequence
from operator import ne
from pathlib import Path

import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.range_names import range_said
from traceforge.reading.sqlite_file import MAGIC, SqliteFile, open_sqlite
from traceforge.reading.timeline_rows import COMPLETE, LATEST_NS, TimelineRows
from traceforge.records import Batch, ReadOptions, Source, SourceSummary

_KIND = "rocpd"
_DISPATCH = re.compile(r"^rocpd_kernel_dispatch(\w*)$")
_PIECE_ROWS = 122_880
_COMMAND = "rocprofv3 --kernel-trace --hip-trace --rccl-trace --marker-trace --output-format json --"
_CATEGORIES = (("HSA", "cuda_driver"), ("RCCL", "cpu_op"), ("MARKER", "user_annotation"), ("ROCTX", "user_annotation"))
_COPY = {"HOST_TO_HOST": "HtoH", "HOST_TO_DEVICE": "HtoD", "DEVICE_TO_HOST": "DtoH", "DEVICE_TO_DEVICE": "DtoD"}
_LEFT = ("rocpd_memory_allocate", "rocpd_sample", "rocpd_pmc_event")
_SCHEMA = {
    "raw_start_ns": pl.Int64, "end_ns": pl.Int64, "name": pl.String, "category": pl.String, "device": pl.Int64,
    "stream": pl.Int64, "thread": pl.Int64, "correlation": pl.Int64, "size_bytes": pl.Int64,
}  # fmt: skip
_ISSUES = {
    "no_events": ("warning", "the file holds no dispatch, copy or region"),
    "event_without_timestamp": ("warning", "a record without a start or an end is not kept"),
    "negative_duration": ("warning", "a record that ends before it starts was given the duration 0"),
    "no_launches": ("info", "the file holds no calls: what the host did is not recorded (rocprofv3 --hip-trace)"),
    "not_read": ("info", "records that nothing here reads, or of tables without the columns of schema 3 or 4"),
    "no_names": ("warning", "a table of names is missing: kernels or calls have none"),
    "out_of_range": ("warning", "a number does not fit its column and became NULL"),
}
_DEVICES = "SELECT {id}, {product} FROM {agent} WHERE type = 'GPU' ORDER BY id"
_KERNELS = """
SELECT {start}, {end}, COALESCE({display}, {kernel}, 'kernel'), 'kernel', {agent}, {stream}, NULL, {stack}, NULL
FROM {table} AS t LEFT JOIN {symbol} AS k ON k.id = t.kernel_id LEFT JOIN {event} AS e ON e.id = t.event_id{places}
"""
_COPIES = """
SELECT {start}, {end}, COALESCE(s.string, 'Memcpy'), 'gpu_memcpy', COALESCE(t.dst_agent_id, t.src_agent_id), {stream},
  NULL, {stack}, t.size
FROM {table} AS t LEFT JOIN {string} AS s ON s.id = t.name_id LEFT JOIN {event} AS e ON e.id = t.event_id{places}
"""
_REGIONS = """
SELECT {start}, {end}, COALESCE(s.string, 'call'), COALESCE(c.{kind}, ''), NULL, NULL, {thread}, {stack}, NULL
FROM {table} AS t LEFT JOIN {string} AS s ON s.id = t.name_id LEFT JOIN {event} AS e ON e.id = t.event_id{places}
LEFT JOIN {category} AS c ON c.id = e.category_id
"""
_TRACK = " LEFT JOIN {track} AS p ON p.id = t.track_id"
_TIMES = " LEFT JOIN {timestamp} AS a ON a.id = t.start_id LEFT JOIN {timestamp} AS z ON z.id = t.end_id"
_HINT = "rocprofv3 --output-format json writes what is read of every version"


class RocpdSource:
    """The source `rocpd`."""

    name = _KIND

    def recognises(self, head: bytes) -> bool:
        """Whether the first bytes are those of SQLite, and name rocprofv3's tables."""
        return head.startswith(MAGIC) and b"rocpd_" in head and b"CREATE TABLE" in head

    def may_recognise(self, start: bytes) -> bool:
        """Whether the file may be one of ours, by its first bytes."""
        return start.startswith(MAGIC)

    def parts(self, path: Path) -> list[str]:
        """Names of the processes of a file.

        Raises:
            InputUnusableError: it is damaged.
        """
        with open_sqlite(path) as database:
            return _suffixes(database)

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read one process of a file: the one that the options name, or its only one.

        Raises:
            InputUnusableError: it is damaged, or of a schema that is not known.
        """
        with open_sqlite(path) as database:
            suffix = next((one for one in _suffixes(database) if options.part in (None, one)), None)
            if suffix is None and database.has("rocpd_op"):
                what = "it is a database of rocmProfileData, which is not read"
                raise InputUnusableError(what, where=str(path), hint=f"record with rocprofv3: {_COMMAND}")
            if suffix is None or _times(database, f"rocpd_kernel_dispatch{suffix}", suffix) is None:
                what = "its dispatches have no start and end as schemas 3 and 4 have them"
                raise InputUnusableError(what, where=str(path), hint=_HINT)
            return _RocpdReading(database, suffix, emit).run()


SOURCE: Source = RocpdSource()


def _times(database: SqliteFile, table: str, suffix: str) -> tuple[str, str] | None:
    """SQL of start and end of the rows `t` of a table: their own, or those of timestamps `a` and `z`; None for none."""
    if database.has(table, "start", "end"):
        return "t.start", 't."end"'
    is_apart = database.has(table, "start_id", "end_id") and database.has(f"rocpd_timestamp{suffix}", "id", "value")
    return ("a.value", "z.value") if is_apart else None


def _suffixes(database: SqliteFile) -> list[str]:
    """What the tables of each process end with."""
    return sorted(match[1] for name in database.columns if (match := _DISPATCH.match(name)))


class _RocpdReading:
    """What is gathered while one process is read."""

    def __init__(self, database: SqliteFile, suffix: str, emit: Callable[[Batch], None]) -> None:
        self._database = database
        self._suffix = suffix
        self._emit = emit
        self._rows = TimelineRows(emit)
        self._issues = IssueLog(_ISSUES, f"{_KIND}_")
        self._devices = self._gpus()
        self._left: dict[str, int] = {}

    def _table(self, name: str) -> str:
        return f"rocpd_{name}{self._suffix}"

    def _first(self, table: str, column: str) -> str | None:
        """The first text of a column, where there is one."""
        name = self._table(table)
        if not self._database.has(name, column):
            return None
        found = self._database.rows(f'SELECT {self._database.text(name, column)} FROM "{name}" LIMIT 1')
        return found[0][0] if found else None

    def _pid(self) -> int | None:
        """The system's number of the process, where the file is of one."""
        name = self._table("info_process")
        if not self._database.has(name, "pid"):
            return None
        found = self._database.rows(f'SELECT DISTINCT {self._database.integer(name, "pid")} FROM "{name}" LIMIT 2')
        return found[0][0] if len(found) == 1 else None

    def _gpus(self) -> dict[int, tuple[int, str | None]]:
        """Number and name of each GPU, by its identifier."""
        agent = self._table("info_agent")
        if not self._database.has(agent, "id", "type"):
            return {}
        product = self._database.text(agent, "product_name")
        rows = self._database.rows(_DEVICES.format(id="id", product=product, agent=f'"{agent}"'))
        return {one: (number, name) for number, (one, name) in enumerate(rows) if isinstance(one, int)}

    def run(self) -> SourceSummary:
        """Hand over all rows, and say what was lost."""
        nameless = [one for one in ("string", "info_kernel_symbol") if not self._database.has(self._table(one), "id")]
        self._issues.add("no_names", len(nameless), because=", ".join(nameless))
        self._add("region", _REGIONS, {"name_id"})
        self._issues.add("no_launches", int(not self._rows.count))
        self._add("kernel_dispatch", _KERNELS, {"kernel_id"})
        self._add("memory_copy", _COPIES, {"name_id", "dst_agent_id", "src_agent_id", "size"})
        self._rows.finish()
        self._left |= {name: self._database.count(f"{name}{self._suffix}") for name in _LEFT}
        held = ", ".join(f"{name} {count}" for name, count in self._left.items() if count)
        self._issues.add("not_read", sum(self._left.values()), because=held)
        self._issues.add("no_events", int(not self._rows.count))
        host = self._first("info_node", "hostname")
        self._emit(Batch("raw.profile", self._profile(host)))
        count, lost = self._rows.count, self._issues.lost_events
        return SourceSummary(_KIND, None, host, None, count + lost, count, tuple(self._issues))

    def _add(self, table: str, query: str, needed: set[str]) -> None:
        """Hand over the rows of one table, where it has what the query needs."""
        name = self._table(table)
        times = _times(self._database, name, self._suffix)
        is_whole = self._database.has(name, "event_id", *needed) and self._database.has(self._table("event"), "id")
        if times is None or not is_whole:
            self._left[name] = self._database.count(name)
            return
        said = self._said(table, times)
        for rows in self._database.pieces(query.format(**said), [], _PIECE_ROWS):
            whole = [row for row in rows if all(isinstance(at, int) and abs(at) < LATEST_NS for at in row[:2])]
            self._issues.add("event_without_timestamp", len(rows) - len(whole), lost_events=len(rows) - len(whole))
            clean = [tuple(map(_fitting, row, _TYPES)) for row in whole]
            self._issues.add("out_of_range", sum(map(ne, map(tuple, whole), clean)))
            self._rows.add(self._placed(pl.DataFrame(clean, schema=_SCHEMA, orient="row")))

    def _said(self, table: str, times: tuple[str, str]) -> dict[str, str]:
        """What stands for the placeholders of a query."""
        name = self._table(table)
        of_category = self._database.has(self._table("info_category"), "id", "name")
        tables = {word: self._joined(one, columns) for word, (one, columns) in _JOINED.items()}
        has_tracks = self._database.has(name, "track_id") and self._database.has(self._table("track"), "id")
        places = (_TRACK if has_tracks else "") + (_TIMES if times[0] != "t.start" else "")
        on_track = self._table("track") if has_tracks else name
        own = {
            word: f"{'p' if has_tracks else 't'}.{column}" if self._database.has(on_track, column) else "NULL"
            for word, column in (("stream", "stream_id"), ("thread", "tid"), ("agent", "agent_id"))
        }
        return {
            **tables, **own, "table": f'"{name}"', "places": places.format(**tables),
            "start": times[0], "end": times[1],
            "display": "k.display_name", "kernel": "k.kernel_name", "stack": "e.stack_id",
            "category": tables["category" if of_category else "string"],
            "kind": "name" if of_category else "string",
        }  # fmt: skip

    def _joined(self, table: str, columns: Sequence[str]) -> str:
        """A table by `id`, as SQL: what it lacks is NULL, and of rows of one number there is one."""
        name = self._table(table)
        if name in self._database.numbered and self._database.has(name, *columns):
            return f'"{name}"'
        held = [one if self._database.has(name, one) else f"NULL AS {one}" for one in columns]
        rows = f' FROM "{name}" GROUP BY id' if self._database.has(name, "id") else " WHERE 1 = 0"
        number = "id" if self._database.has(name, "id") else "NULL AS id"
        return f"(SELECT {', '.join([number, *held])}{rows})"

    def _placed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Rows with category, duration, track and plain names."""
        self._issues.add("negative_duration", frame.filter(pl.col("end_ns") < pl.col("raw_start_ns")).height)
        numbers = {one: number for one, (number, _) in self._devices.items()}
        device = pl.col("device").replace_strict(numbers, default=None, return_dtype=pl.Int32)
        on_device = pl.col("category").is_in(["kernel", "gpu_memcpy"])
        category = pl.lit("cuda_runtime")
        for word, ours in _CATEGORIES:
            category = pl.when(pl.col("category").str.contains(word)).then(pl.lit(ours)).otherwise(category)
        name = pl.col("name").str.replace(r"\.kd$", "")
        for word, ours in _COPY.items():
            copies = (pl.col("category") == "gpu_memcpy") & name.str.contains(word)
            name = pl.when(copies).then(pl.lit(f"Memcpy {ours}")).otherwise(name)
        thread = pl.col("thread").cast(pl.String)
        fits = pl.col("stream").is_between(-(2**31), 2**31 - 1)
        self._issues.add("out_of_range", frame.filter(~fits).height)
        placed = frame.with_columns(
            phase=pl.lit(COMPLETE),
            category=pl.when(on_device).then(pl.col("category")).otherwise(category),
            name=name,
            device=device,
            stream=pl.when(fits).then(pl.col("stream")).cast(pl.Int32),
            duration_ns=(pl.col("end_ns") - pl.col("raw_start_ns")).clip(lower_bound=0),
            process=pl.when(on_device).then(device.cast(pl.String)).otherwise(pl.lit("host")),
            thread=pl.when(on_device).then(pl.format("stream {}", "stream")).otherwise(thread),
        )
        return _with_ranges(placed)

    def _profile(self, host: str | None) -> pl.DataFrame:
        devices = [{"id": number, "name": name} for number, name in self._devices.values() if name]
        row = {
            "base_time_ns": 0, "host_name": host, "device_name": devices[0]["name"] if devices else None,
            "metadata": json.dumps({"deviceProperties": devices, "process": self._pid()}),
        }  # fmt: skip
        texts = dict.fromkeys(("host_name", "device_name", "metadata"), pl.String)
        return pl.DataFrame([row], schema={"base_time_ns": pl.Int64, **texts})


_JOINED = {
    "event": ("event", ("stack_id", "category_id")),
    "string": ("string", ("string",)),
    "category": ("info_category", ("name",)),
    "symbol": ("info_kernel_symbol", ("display_name", "kernel_name")),
    "track": ("track", ("agent_id", "stream_id", "tid")),
    "timestamp": ("timestamp", ("value",)),
}


def _with_ranges(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows whose ranges have the category and name that their text says."""
    is_range = (pl.col("category") == "user_annotation") & pl.col("name").is_not_null()
    texts = frame.filter(is_range)["name"].unique().to_list()
    said = [range_said(text)[:2] for text in texts]
    plain = [
        pl.when(is_range).then(pl.col("name").replace_strict(texts, values, default=None, return_dtype=pl.String))
        .otherwise(pl.col(column)).alias(column)
        for column, values in (("category", [one[0] for one in said]), ("name", [one[1] for one in said]))
    ]  # fmt: skip
    return frame.with_columns(plain) if texts else frame


_TYPES = tuple(str if kind == pl.String else int for kind in _SCHEMA.values())


def _fitting(value: object, kind: type) -> object:
    """A value of the type that its column should have, which SQLite does not promise; NULL for others."""
    return value if isinstance(value, kind) else None
