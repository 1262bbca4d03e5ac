"""Which of NCCL's calls a kernel carries out. In: ranges, kernels and launches of a process. Out: raw.collective.

Idea: a kernel is of the call within whose range it was launched. Within ncclGroupStart and ncclGroupEnd it is launched
at the end, for all calls of the group; these are known where all are of one communicator. A communicator's number,
which all of its ranks share, is the name of the group.
Not handled: groups of calls on several communicators (their kernels get no size), and several threads that share one.
"""

from collections.abc import Callable

import msgspec
import polars as pl

from traceforge.reading.issue_log import IssueLog
from traceforge.records import Batch
from traceforge.sources.nsys.nccl_payloads import COMMUNICATOR, PEER, RANK, RANKS, SIZE, Payload, PayloadReader

_GROUP_START, _GROUP_END = "ncclGroupStart", "ncclGroupEnd"
_INT32, _INT64 = 2**31, 2**63
_RANGE = {"event_id": pl.Int64, "thread": pl.String, "start": pl.Int64, "end": pl.Int64, "name": pl.String}
_CALL = {**_RANGE, "communicator": pl.String, "in_elements": pl.Int64, "out_elements": pl.Int64, "peer": pl.Int32}
_KERNEL = {"event_id": pl.Int64, "correlation": pl.Int64}
_LAUNCH = {"thread": pl.String, "start": pl.Int64, "correlation": pl.Int64}
# What the size of a call, as NCCL states it, counts: the part of one rank, where it is not the whole message.
_SENDS_PART = frozenset({"ncclAllGather", "ncclGather"})
_RECEIVES_PART = frozenset({"ncclReduceScatter", "ncclScatter"})
_EXCHANGES_PARTS = frozenset({"ncclAlltoAll", "ncclAllToAll"})


class NcclCalls:
    """Gathers what ranges and kernels of NCCL say; see `batches`."""

    def __init__(self, reader: PayloadReader, issues: IssueLog) -> None:
        self._reader = reader
        self._issues = issues
        self._ranges: list[pl.DataFrame] = []
        self._kernels: list[pl.DataFrame] = []
        self._payloads: dict[int, Payload] = {}

    @property
    def are_read(self) -> bool:
        """Whether some payload stated something."""
        return bool(self._payloads)

    def job_rank(self, processes: int) -> tuple[int | None, int | None]:
        """Rank and number of ranks of the largest communicator that the process joined while it was recorded.

        Args:
            processes: of the report. A communicator with fewer ranks is a part of the job, and tells neither.
        """
        stated = [(one.get(RANKS, 0), one.get(RANK, -1)) for one in self._payloads.values()]
        fitting = [(ranks, rank) for ranks, rank in stated if 0 <= rank < ranks < _INT32 and ranks >= processes > 1]
        ranks, rank = max(fitting, key=lambda one: one[0], default=(None, None))
        return rank, ranks

    @property
    def correlations(self) -> pl.Series:
        """Of NCCL's kernels, where payloads tell something of them; else empty."""
        if not self._payloads or not self._kernels:
            return pl.Series([], dtype=pl.Int64)
        return pl.concat(self._kernels)["correlation"].drop_nulls()

    def take_ranges(self, frame: pl.DataFrame, first: int) -> None:
        """Take the ranges of NCCL among those of a piece, whose events count from `first`."""
        own = _numbered(frame, first).filter(pl.col("name").str.starts_with("nccl") & pl.col("end").is_not_null())
        self._ranges.append(own.select(list(_RANGE)))
        if "payload" not in own.columns:
            return
        unread = 0
        held = own.filter(pl.col("payload").is_not_null() | pl.col("payload_text").is_not_null())
        for event_id, data, text in held.select("event_id", "payload", "payload_text").iter_rows():
            payload = self._reader.read(data, text)
            unread += payload is None
            if payload:
                self._payloads[event_id] = payload
        self._issues.add("payload_unreadable", unread)

    def take_kernels(self, frame: pl.DataFrame, first: int) -> None:
        """Take the kernels of NCCL among those of a piece, likewise; none where no payload tells of them."""
        if not self._payloads:
            return
        own = _numbered(frame, first).filter(pl.col("name").str.contains("(?i)nccl"))
        self._kernels.append(own.select(list(_KERNEL)))

    def batches(self, launches: Callable[[pl.Series], pl.DataFrame]) -> list[Batch]:
        """Arguments of the calls, which kernels carry them out, and the communicators of the process.

        Args:
            launches: thread, start and correlation of the calls to CUDA that have some correlations.
        """
        if not self._payloads:
            return []
        ranges = pl.concat(self._ranges).sort("thread", "start", "event_id")
        calls = self._calls(ranges)
        texts = [msgspec.json.encode(payload).decode() for payload in self._payloads.values()]
        args = pl.DataFrame([list(self._payloads), texts], schema={"event_id": pl.Int64, "args": pl.String})
        found = [Batch("raw.argument", args.sort("event_id")), Batch("raw.process_group", self._communicators())]
        if self._kernels and calls.height:
            kernels = pl.concat(self._kernels)
            launched = kernels.join(launches(self.correlations), on="correlation").sort("thread", "start", "event_id")
            found.append(Batch("raw.collective", _carried(launched, calls, _groups(ranges)).sort("event_id")))
        return [batch for batch in found if batch.rows.height]

    def _calls(self, ranges: pl.DataFrame) -> pl.DataFrame:
        """Ranges that move something: what each sends and receives, bytes."""
        sizes = self._communicator_sizes()
        rows = []
        for row in ranges.iter_rows(named=True):
            payload = self._payloads.get(row["event_id"], {})
            if SIZE in payload:
                communicator = payload.get(COMMUNICATOR)
                sent, received = _sides(row["name"], payload[SIZE], sizes.get(communicator))
                peer = payload.get(PEER)
                rows.append(
                    (*(row[name] for name in _RANGE), _name(communicator), _fitting(sent), _fitting(received),
                     peer if peer is not None and 0 <= peer < _INT32 else None)
                )  # fmt: skip
        return pl.DataFrame(rows, schema=_CALL, orient="row")

    def _communicator_sizes(self) -> dict[int | None, int]:
        return {
            payload[COMMUNICATOR]: payload[RANKS]
            for payload in self._payloads.values()
            if COMMUNICATOR in payload and 0 < payload.get(RANKS, 0) < _INT32
        }

    def _communicators(self) -> pl.DataFrame:
        """The communicators that the process called or joined, with their sizes where it joined while recorded."""
        sizes = self._communicator_sizes()
        used = dict.fromkeys(payload.get(COMMUNICATOR) for payload in self._payloads.values())
        rows = [(_name(one), "nccl", sizes.get(one)) for one in used if one]
        schema = {"process_group_name": pl.String, "backend": pl.String, "size": pl.Int32}
        return pl.DataFrame(rows, schema=schema, orient="row")


def _numbered(frame: pl.DataFrame, first: int) -> pl.DataFrame:
    return frame.with_columns(event_id=pl.int_range(first, first + frame.height, dtype=pl.Int64))


def _name(communicator: int | None) -> str | None:
    return f"NCCL communicator {communicator % 2**64:#x}" if communicator else None


def _fitting(number: int | None) -> int | None:
    return number if number is not None and 0 <= number < 2**48 else None


def _sides(name: str, size: int, ranks: int | None) -> tuple[int | None, int | None]:
    """Bytes that a call sends and receives."""
    whole = size * ranks if ranks else None
    if name in _SENDS_PART:
        return size, whole
    if name in _RECEIVES_PART:
        return whole, size
    return (whole, whole) if name in _EXCHANGES_PARTS else (size, size)


def _groups(ranges: pl.DataFrame) -> pl.DataFrame:
    """From the start of the outermost ncclGroupStart to the end of its ncclGroupEnd, by thread."""
    starts = ranges.filter(pl.col("name") == _GROUP_START).select("thread", at="start", step=pl.lit(1))
    ends = ranges.filter(pl.col("name") == _GROUP_END).select("thread", at="end", step=pl.lit(-1))
    edges = pl.concat([starts, ends]).sort("thread", "at", pl.col("step") * -1)
    depth = edges.with_columns(depth=pl.col("step").cum_sum().over("thread"))
    opening = depth.filter((pl.col("step") == 1) & (pl.col("depth") == 1)).select("thread", start="at")
    closing = depth.filter((pl.col("step") == -1) & (pl.col("depth") == 0)).select("thread", group_end="at", at="at")
    paired = opening.sort("start").join_asof(
        closing.sort("at"), left_on="start", right_on="at", by="thread", strategy="forward"
    )
    return paired.drop_nulls("group_end").with_columns(group_start="start").sort("start")


def _carried(launched: pl.DataFrame, calls: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Rows of raw.collective: of kernels within a call that call's, of those within a group the sum of its calls."""
    moved = ("in_elements", "out_elements")
    launched = launched.sort("start")
    within = launched.join_asof(calls.sort("start").drop("event_id"), on="start", by="thread")
    # The start is the launch's own; what is not launched before the call's end is of another.
    alone = within.filter((pl.col("end") >= pl.col("start")).fill_null(value=False))
    rest = launched.join(alone, on="event_id", how="anti")
    grouped = rest.join_asof(groups, on="start", by="thread").filter(pl.col("group_end") >= pl.col("start"))
    of_group = calls.sort("start").join_asof(groups, on="start", by="thread")
    together = (
        of_group.filter(pl.col("end") <= pl.col("group_end"))
        .group_by("thread", "group_start")
        .agg(
            pl.when(pl.col("name").n_unique() == 1).then(pl.col("name").first()).otherwise(pl.lit("ncclSendRecv"))
            .first().alias("name"),
            pl.col("communicator").n_unique().alias("communicators"),
            pl.col("communicator").first(),
            *(pl.when(pl.col(one).null_count() == 0).then(pl.col(one).sum()).first().alias(one) for one in moved),
            pl.when(pl.len() == 1).then(pl.col("peer").first()).first().alias("peer"),
        )
        .filter(pl.col("communicators") == 1)
    )  # fmt: skip
    columns = ["event_id", "name", "communicator", *moved, "peer"]
    found = pl.concat(
        [alone.select(columns), grouped.join(together, on=["thread", "group_start"]).select(columns)], how="vertical"
    )
    return found.select(
        "event_id",
        collective_name=pl.col("name").str.strip_prefix("nccl"),
        process_group_name="communicator",
        # NCCL states bytes, and no type of element.
        dtype=pl.lit("Byte"),
        in_elements="in_elements",
        out_elements="out_elements",
        group_rank="peer",
    )
