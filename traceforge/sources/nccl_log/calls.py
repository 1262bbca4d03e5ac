"""Rows of raw.nccl_collective_call. In: calls, one by one or many at once. Out: rows that name their communicator.

Idea: calls wait for the end of their block, when it is known which communicator every pointer meant at every record; a
pointer that no record announced is a handle of its own, numbered by its first call.
Not handled: which call of the application a line stands for (opCount does not tell; order within the handle does).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from traceforge.sources.nccl_log import quantities
from traceforge.sources.nccl_log.byte_words import Int64Array
from traceforge.sources.nccl_log.canonical_lines import Lines
from traceforge.sources.nccl_log.communicators import Communicators, Handle, Segment
from traceforge.sources.nccl_log.grammar import Record, fitting
from traceforge.sources.nccl_log.tables import COLUMNS, SCHEMAS, TYPES, Tables

_NONE = -1
_READ: Mapping[str, quantities.Read] = {
    "op_count": quantities.hexadecimal,
    "datatype": quantities.datatype,
    "reduction": quantities.reduction,
}
_DEFAULTS: Mapping[str, quantities.Read] = {
    "i32": quantities.integer,
    "i64": quantities.integer,
    "u64": quantities.address,
}
_TAIL = ("datatype", "reduction", "root", "rank_count", "stream", "task", "global_rank")
"""Columns told by what follows the size in a line."""


def call_row(groups: Mapping[str, str | None]) -> dict[str, object]:
    """Columns of a call from a pattern's groups, with `comm` (its pointer) and `element_bytes` beside them."""
    row: dict[str, object] = {}
    for name, kind in COLUMNS["collective_call"].items():
        text = groups.get(name)
        if text is not None:
            row[name] = fitting(_READ.get(name, _DEFAULTS.get(kind, str))(text), kind)
    size, count = quantities.datatype_bytes(groups.get("datatype") or ""), row.get("element_count")
    row["element_bytes"] = size
    row["size_bytes"] = None if size is None or not isinstance(count, int) else fitting(count * size, "i64")
    row["comm"] = quantities.address(groups.get("comm") or "")
    return row


def call_tail(row: Mapping[str, object]) -> dict[str, object]:
    """The part of a call that recurs from line to line."""
    return {name: row.get(name) for name in (*_TAIL, "element_bytes", "comm")}


class Entries:
    """What was learnt, as a frame that grows with it."""

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        self._schema = dict(schema)
        self._frame = pl.DataFrame(schema=self._schema)

    def frame(self, entries: Sequence[Mapping[str, object]]) -> pl.DataFrame:
        """All entries so far, a row each; earlier ones never change."""
        if len(entries) > self._frame.height:
            fresh = entries[self._frame.height :]
            columns = {name: [entry[name] for entry in fresh] for name in self._schema}
            self._frame = self._frame.vstack(pl.DataFrame(columns, schema=self._schema))
        return self._frame


class Calls:
    """The calls of one file.

    Attributes:
        implied: handles that only calls tell of, by life of their pointer.
        global_ranks: global ranks that calls state (RCCL).
        stated_by: subsystems that state calls.
    """

    def __init__(self, tables: Tables, communicators: Communicators) -> None:
        self.implied: dict[Segment, Handle] = {}
        self.global_ranks: set[int] = set()
        self.stated_by: set[str] = set()
        self._tables = tables
        self._communicators = communicators
        self._rows: list[dict[str, object]] = []
        self._frames: list[pl.DataFrame] = []
        schema = {name: SCHEMAS["collective_call"][name] for name in _TAIL}
        self._tails = Entries({**schema, "element_bytes": TYPES["i64"], "comm": TYPES["u64"]})
        self._waiting_schema = {**SCHEMAS["collective_call"], "process_id": TYPES["i32"], "comm": TYPES["u64"]}

    def add(self, record: Record, row: Mapping[str, object], stated_by: str) -> bool:
        """A call read the slow way, as `call_row` makes it; always true, for handlers."""
        place = {"record_id": record.record_id, "process_id": record.process_id, "stated_by": stated_by}
        self._rows.append({**row, **place})
        return True

    def add_lines(
        self,
        lines: Lines,
        record_ids: Int64Array,
        heads: pl.DataFrame,
        tails: Sequence[Mapping[str, object]],
    ) -> None:
        """Calls read many at once.

        Args:
            lines: their fields.
            record_ids: their numbers.
            heads: process_id and op, a row a line.
            tails: all tails that were learnt, which `lines.tail` counts.
        """
        numbers = lines.numbers
        counts = pl.Series(numbers["element_count"].view(np.int64))
        frame = self._tails.frame(tails)[lines.tail].with_columns(
            heads["process_id"],
            heads["op"],
            pl.Series("record_id", record_ids),
            pl.Series("op_count", numbers["op_count"].view(np.int64)),
            pl.Series("send_address", numbers["send_address"]),
            pl.Series("receive_address", numbers["receive_address"]),
            element_count=counts,
            size_bytes=counts * pl.col("element_bytes"),
            stated_by=pl.lit("coll"),
            handle_id=pl.lit(None, dtype=pl.Int64),
        )
        self._frames.append(frame.select(list(self._waiting_schema)))

    def finish_block(self) -> None:
        """Name the communicators of all waiting calls, and hand them on."""
        frames = self._frames
        if self._rows:
            columns = {name: [row.get(name) for row in self._rows] for name in self._waiting_schema}
            frames = [*frames, pl.DataFrame(columns, schema=self._waiting_schema)]
        self._rows, self._frames = [], []
        if not frames:
            return
        calls = frames[0] if len(frames) == 1 else pl.concat(frames).sort("record_id")
        self.global_ranks.update(calls["global_rank"].drop_nulls().unique().to_list())
        self.stated_by.update(calls["stated_by"].unique().to_list())
        named = calls.with_columns(handle_id=self._handles(calls)).drop("process_id", "comm")
        self._tables.add_frame("collective_call", named)

    def _handles(self, calls: pl.DataFrame) -> pl.Series:
        record_ids = calls["record_id"].to_numpy()
        handles = np.full(calls.height, _NONE, dtype=np.int64)
        pairs = calls.select("process_id", "comm").with_row_index("row")
        for (process_id, pointer), group in pairs.group_by("process_id", "comm", maintain_order=True):
            if not isinstance(pointer, int):
                continue
            key = (process_id if isinstance(process_id, int) else None, pointer)
            rows = group["row"].to_numpy()
            lives = np.array([start for start, _ in self._communicators.history.get(key, ())], dtype=np.int64)
            numbers = np.searchsorted(lives, record_ids[rows], side="right")
            for number in np.unique(numbers).tolist():
                within = rows[numbers == number]
                first = int(within[0])
                handles[within] = self._handle(
                    (key, number), int(record_ids[first]), {"rank_count": calls["rank_count"][first]}
                )
        return pl.Series(handles).replace(_NONE, None)

    def _handle(self, segment: Segment, first_record_id: int, facts: Mapping[str, object]) -> int:
        """Handle of a life of a pointer, whose first call in this block has a number and facts."""
        announced = self._communicators.living(segment)
        if announced is not None:
            return announced
        (process_id, pointer), _ = segment
        handle = self.implied.get(segment)
        if handle is None:
            handle = self.implied[segment] = Handle(first_record_id, process_id, {"comm_pointer": pointer})
        handle.learn(facts)
        return handle.handle_id
