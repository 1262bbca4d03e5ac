"""Files of the NCCL Inspector plug-in. In: a file of JSON lines. Out: raw.nccl_inspector_operation rows.

Idea: a line is an operation of a rank, with its number in the communicator, its size and its measured duration: the
best timing that NCCL itself gives. Since output format 4.3 a marker says once whose operations follow, and how many.
Seen: output format 4.0 of NCCL 2.28 to 2.30; of 4.1 to 4.4 what their documentation shows. Not handled: the Prometheus
mode, which keeps no single operations; the steps of NCCL's proxy.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import polars as pl

from traceforge.errors import InputUnusableError
from traceforge.reading.lines import bounded_lines
from traceforge.reading.stream import ByteStream
from traceforge.records import Batch, Issue, ReadOptions, Source, SourceSummary

_KIND = "nccl_inspector"
_BATCH_ROWS = 100_000
_MICROSECOND_NS = 1_000
_GIGABYTE = 1_000_000_000
_SCHEMA: dict[str, pl.DataType] = {
    "line": pl.Int64(),
    "comm_hash": pl.String(),
    "rank": pl.Int32(),
    "rank_count": pl.Int32(),
    "node_count": pl.Int32(),
    "host": pl.String(),
    "pid": pl.Int64(),
    "raw_dump_time_ns": pl.Int64(),
    "op": pl.String(),
    "sequence": pl.Int64(),
    "peer": pl.Int32(),
    "size_bytes": pl.Int64(),
    "duration_ns": pl.Int64(),
    "timing_source": pl.String(),
    "algorithm_bandwidth_bytes_per_s": pl.Int64(),
    "bus_bandwidth_bytes_per_s": pl.Int64(),
    "raw_start_ns": pl.Int64(),
    "raw_end_ns": pl.Int64(),
    "channel_count": pl.Int32(),
}
_LARGEST = 2**63 - 1
_ISSUES = {
    "nccl_inspector_unreadable_line": (
        "warning",
        "lines that are no JSON object, or above 16 MiB, were left out",
    ),
    "nccl_inspector_without_operation": ("info", "lines that state no operation were left out"),
    "nccl_inspector_without_rank": ("warning", "operations whose marker is missing: whose they are is not known"),
    "nccl_inspector_overwritten": (
        "warning",
        "operations that the Inspector lost: lower NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS",
    ),
    "nccl_inspector_damaged_compression": ("warning", "the compressed data is damaged; what precedes it is read"),
}

_LOST_LINES = ("nccl_inspector_unreadable_line", "nccl_inspector_without_operation")


_MOST_RECORDS = 2**31


class _Header(msgspec.Struct):
    id: str | int | None = None
    rank: int | None = None
    n_ranks: int | None = None
    nnodes: int | None = None


class _Metadata(msgspec.Struct):
    dump_timestamp_us: int | None = None
    hostname: str | None = None
    pid: int | None = None


class _Kernel(msgspec.Struct):
    kernel_start_ts: float | None = None
    kernel_stop_ts: float | None = None


class _Events(msgspec.Struct):
    kernel_events: list[_Kernel] = []


class _Performance(msgspec.Struct):
    coll: str | None = None
    p2p: str | None = None
    coll_sn: int | None = None
    p2p_sn: int | None = None
    p2p_peer: int | None = None
    coll_msg_size_bytes: int | None = None
    p2p_msg_size_bytes: int | None = None
    coll_exec_time_us: float | None = None
    p2p_exec_time_us: float | None = None
    coll_timing_source: str | None = None
    p2p_timing_source: str | None = None
    coll_algobw_gbs: float | None = None
    p2p_algobw_gbs: float | None = None
    coll_busbw_gbs: float | None = None
    p2p_busbw_gbs: float | None = None
    event_trace_ts: _Events | None = None


class _Marker(msgspec.Struct):
    coll_records: int = 0
    p2p_records: int = 0
    proxy_records: int = 0
    coll_dropped_since_last_dump: int = 0
    p2p_dropped_since_last_dump: int = 0


class _Line(msgspec.Struct):
    header: _Header | None = None
    metadata: _Metadata | None = None
    dump_stats: _Marker | None = None
    coll_perf: _Performance | None = None
    p2p_perf: _Performance | None = None


def _believed(count: int) -> int:
    """A count as far as any dump has so many."""
    return min(max(0, count), _MOST_RECORDS)


class _Lines:
    """What the lines of one file say, in order.

    Attributes:
        found: how often each issue was found, and in which line first.
    """

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, int]] = {}
        self._decoder = msgspec.json.Decoder(_Line, strict=False)
        self._marker = _Line()
        self._left = 0

    def row(self, line: bytes | None, number: int) -> dict[str, object] | None:
        """The operation of a line, or None where it states none."""
        if line is not None and not line.strip():
            return None
        try:
            stated = self._decoder.decode(line or b"")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._left -= 1
            self._note("nccl_inspector_unreadable_line", number)
            return None
        if stated.dump_stats is not None and stated.header is not None:
            counts = stated.dump_stats
            held = (counts.coll_records, counts.p2p_records, counts.proxy_records)
            self._marker, self._left = stated, sum(map(_believed, held))
            lost = _believed(counts.coll_dropped_since_last_dump) + _believed(counts.p2p_dropped_since_last_dump)
            self._note("nccl_inspector_overwritten", number, lost)
            return None
        self._left -= 1
        perf = stated.coll_perf or stated.p2p_perf
        if perf is None or not (perf.coll or perf.p2p):
            self._note("nccl_inspector_without_operation", number)
            return None
        if stated.header is None and self._left >= 0:
            stated = self._marker
        elif stated.header is None:
            self._note("nccl_inspector_without_rank", number)
        return _operation(stated, perf, number)

    def _note(self, code: str, number: int, count: int = 1) -> None:
        known, first = self.found.get(code, (0, number))
        if known + count:
            self.found[code] = (known + count, first)


class NcclInspectorSource:
    """The source `nccl_inspector`."""

    name = _KIND

    def recognises(self, head: bytes) -> bool:
        """Whether the first line is an object that only the Inspector writes."""
        first = head.lstrip().partition(b"\n")[0]
        return first.startswith(b"{") and (b'"inspector_output_format_version"' in first or b'"coll_perf"' in first)

    def read(self, path: Path, emit: Callable[[Batch], None], options: ReadOptions) -> SourceSummary:
        """Read a whole file, line by line.

        Raises:
            InputUnusableError: the file cannot be opened, or no line of it states an operation.
        """
        lines = _Lines()
        rows: list[dict[str, object]] = []
        stored = number = 0
        with ByteStream(path, options.report_progress) as stream:
            for number, line in enumerate(bounded_lines(stream), start=1):
                row = lines.row(line, number)
                if row is not None:
                    rows.append(row)
                if len(rows) >= _BATCH_ROWS:
                    stored += _hand_over(rows, emit)
        stored += _hand_over(rows, emit)
        if not stored:
            raise InputUnusableError("no operation of the NCCL Inspector can be read", where=str(path))
        issues = [
            _issue(code, count, first, is_lost=code in _LOST_LINES) for code, (count, first) in lines.found.items()
        ]
        if stream.damage is not None:
            issues.append(_issue("nccl_inspector_damaged_compression", 1, number, is_lost=False))
        return SourceSummary(
            _KIND, None, None, None, stored + sum(one.lost_events for one in issues), stored, tuple(issues)
        )


def _operation(stated: _Line, perf: _Performance, number: int) -> dict[str, object]:
    header, metadata = stated.header or _Header(), stated.metadata or _Metadata()
    kernels = [] if perf.event_trace_ts is None else perf.event_trace_ts.kernel_events
    starts = [kernel.kernel_start_ts for kernel in kernels if kernel.kernel_start_ts]
    ends = [kernel.kernel_stop_ts for kernel in kernels if kernel.kernel_stop_ts]
    return {
        "line": number,
        "comm_hash": _hash(header.id),
        "rank": _fitting(header.rank, 31),
        "rank_count": _fitting(header.n_ranks, 31),
        "node_count": _fitting(header.nnodes, 31),
        "host": metadata.hostname,
        "pid": _fitting(metadata.pid),
        "raw_dump_time_ns": _scaled(metadata.dump_timestamp_us, _MICROSECOND_NS),
        "op": perf.coll or perf.p2p,
        "sequence": _fitting(_first(perf.coll_sn, perf.p2p_sn)),
        "peer": _fitting(perf.p2p_peer, 31),
        "size_bytes": _fitting(_first(perf.coll_msg_size_bytes, perf.p2p_msg_size_bytes)),
        "duration_ns": _scaled(_first(perf.coll_exec_time_us, perf.p2p_exec_time_us), _MICROSECOND_NS),
        "timing_source": perf.coll_timing_source or perf.p2p_timing_source,
        "algorithm_bandwidth_bytes_per_s": _scaled(_first(perf.coll_algobw_gbs, perf.p2p_algobw_gbs), _GIGABYTE),
        "bus_bandwidth_bytes_per_s": _scaled(_first(perf.coll_busbw_gbs, perf.p2p_busbw_gbs), _GIGABYTE),
        "raw_start_ns": _scaled(min(starts, default=None), _MICROSECOND_NS),
        "raw_end_ns": _scaled(max(ends, default=None), _MICROSECOND_NS),
        "channel_count": len(kernels) or None,
    }


def _hand_over(rows: list[dict[str, object]], emit: Callable[[Batch], None]) -> int:
    count = len(rows)
    if count:
        emit(Batch("raw.nccl_inspector_operation", pl.DataFrame(rows, schema=_SCHEMA)))
        rows.clear()
    return count


def _hash(identifier: str | int | None) -> str | None:
    """commHash as raw.nccl_communicator writes it: 0x and hex digits without leading zeros."""
    if identifier is None or isinstance(identifier, int):
        return None if identifier is None else hex(identifier)
    try:
        return hex(int(identifier.removeprefix("0x"), 16))
    except ValueError:
        return identifier


def _first(a: float | None, b: float | None) -> float | None:
    return b if a is None else a


def _fitting(value: float | None, bits: int = 63) -> int | None:
    return int(value) if value is not None and -(2**bits) <= value < 2**bits else None


def _scaled(value: float | None, factor: int) -> int | None:
    """A quantity in a smaller unit; whole numbers stay exact."""
    if value is None or not -_LARGEST <= value * factor <= _LARGEST:
        return None
    return value * factor if isinstance(value, int) else round(value * factor)


def _issue(code: str, count: int, first: int, *, is_lost: bool = True) -> Issue:
    severity, detail = _ISSUES[code]
    return Issue(code, severity, count, f"line {first}", detail, count if is_lost else 0)


SOURCE: Source = NcclInspectorSource()
