"""Rows of raw.nccl_collective_call. In: calls, one by one or many at once. Out: rows that name their communicator.

Idea: calls wait for the end of their block, when it is known which communicator every pointer meant at every record; a
pointer that no record announced is a handle of its own, numbered by its first call.
Not handled: which call of the application a line stands for (opCount does not say; order within the handle does).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from traceforge.sources.nccl_log import quantities
from traceforge.sources.nccl_log.byte_words import Int64Array
from traceforge.sources.nccl_log.canonical_lines import Lines
from traceforge.sources.nccl_log.communicators import MOST_COMMUNICATORS, Communicators, LoggedCommunicator, Segment
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
"""Columns known from what follows the size in a line."""


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


class LoggedCalls:
    """The calls of one file.

    Attributes:
        implied: handles known only from calls, by life of their pointer.
        global_ranks: global ranks that calls state (RCCL).
        stated_by: subsystems that state calls.
    """

    def __init__(self, tables: Tables, communicators: Communicators) -> None:
        self.implied: dict[Segment, LoggedCommunicator] = {}
        self.global_ranks: set[int] = set()
        self.stated_by: set[str] = set()
        self._tables = tables
        self._communicators = communicators
        self._rows: list[dict[str, object]] = []
        self._frames: list[tuple[pl.DataFrame, list[_CallGroup]]] = []
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
        known = self._tails.frame(tails)
        widths = known["element_bytes"].fill_null(0).to_numpy()[lines.tail]
        counts = numbers["element_count"].view(np.int64)
        frame = known.select(*_TAIL, has_size=pl.col("element_bytes").is_not_null())[lines.tail]
        frame = frame.with_columns(
            heads["op"],
            pl.Series("record_id", record_ids),
            pl.Series("op_count", numbers["op_count"].view(np.int64)),
            pl.Series("send_address", numbers["send_address"]),
            pl.Series("receive_address", numbers["receive_address"]),
            pl.Series("element_count", counts),
            size_bytes=pl.when("has_size").then(pl.Series(counts * widths)),
            stated_by=pl.lit("coll"),
        ).drop("has_size")
        self._frames.append((frame, list(_groups_of(lines, heads["process_id"].to_numpy(), tails))))
        self.global_ranks.update(rank for tail in tails if isinstance(rank := tail["global_rank"], int))
        self.stated_by.add("coll")

    def finish_block(self) -> None:
        """Name the communicators of all waiting calls, and hand them on."""
        waiting = self._frames
        if self._rows:
            waiting = [*waiting, self._slow_frame()]
        self._rows, self._frames = [], []
        ids = [frame["record_id"].to_numpy() for frame, _ in waiting]
        handles = [np.full(own.size, _NONE, dtype=np.int64) for own in ids]
        groups = [(int(ids[n][group.rows[0]]), n, group) for n, (_, found) in enumerate(waiting) for group in found]
        # A pointer known only from calls is numbered by its first call, whichever way that was read.
        for _, number, group in sorted(groups, key=lambda found: found[0]):
            self._name(group, ids[number], handles[number])
        for (frame, _), own in zip(waiting, handles, strict=True):
            named = frame.with_columns(handle_id=pl.Series(own).replace(_NONE, None))
            self._tables.add_frame("collective_call", named)

    def _slow_frame(self) -> "tuple[pl.DataFrame, list[_CallGroup]]":
        """Calls that were read one by one."""
        columns = {name: [row.get(name) for row in self._rows] for name in self._waiting_schema}
        frame = pl.DataFrame(columns, schema=self._waiting_schema)
        self.global_ranks.update(frame["global_rank"].drop_nulls().to_list())
        self.stated_by.update(frame["stated_by"].unique().to_list())
        places: dict[tuple[int | None, int], list[int]] = {}
        for row, (process_id, pointer) in enumerate(frame.select("process_id", "comm").iter_rows()):
            if pointer is not None:
                places.setdefault((process_id, pointer), []).append(row)
        sizes = frame["rank_count"].to_list()
        groups = [_CallGroup(key, np.array(rows, dtype=np.int64), sizes[rows[0]]) for key, rows in places.items()]
        return frame.drop("process_id", "comm"), groups

    def _name(self, group: "_CallGroup", record_ids: Int64Array, handles: Int64Array) -> None:
        lives = np.array([start for start, _ in self._communicators.history.get(group.key, ())], dtype=np.int64)
        numbers = np.searchsorted(lives, record_ids[group.rows], side="right")
        first, last = int(numbers[0]), int(numbers[-1])
        # Records are in order, so are the lives they fall into.
        for number in [first] if first == last else np.unique(numbers).tolist():
            within = group.rows if first == last else group.rows[numbers == number]
            segment = (group.key, number)
            handles[within] = self._handle(segment, int(record_ids[within[0]]), {"rank_count": group.rank_count})

    def _handle(self, segment: Segment, first_record_id: int, facts: Mapping[str, object]) -> int:
        """Handle of a life of a pointer, whose first call in this block has a number and facts; -1 beyond the most."""
        announced = self._communicators.living(segment)
        if announced is not None:
            return announced
        (process_id, pointer), _ = segment
        handle = self.implied.get(segment)
        if handle is None and len(self.implied) >= MOST_COMMUNICATORS:
            self._communicators.left_out_count += 1
            return _NONE
        if handle is None:
            handle = self.implied[segment] = LoggedCommunicator(first_record_id, process_id, {"comm_pointer": pointer})
        handle.learn(facts)
        return handle.handle_id


@dataclass(frozen=True, slots=True)
class _CallGroup:
    """Calls of a block on one pointer of one process: their rows, in order, and the ranks the first one states."""

    key: tuple[int | None, int]
    rows: Int64Array
    rank_count: object


def _groups_of(lines: Lines, process_ids: Int64Array, tails: Sequence[Mapping[str, object]]) -> Iterator[_CallGroup]:
    """Calls read many at once, by process and pointer."""
    if not lines.index.size:
        return
    pointers = {tail["comm"]: number for number, tail in enumerate(tails)}
    of_tail = np.array([pointers[tail["comm"]] for tail in tails], dtype=np.int64)
    codes = process_ids.astype(np.int64) * len(tails) + of_tail[lines.tail]
    order = np.argsort(codes.astype(np.uint16) if int(codes.max()) < 2**16 else codes, kind="stable")
    cuts = np.flatnonzero(np.diff(codes[order])) + 1
    for rows in np.split(order, cuts):
        tail = tails[lines.tail[rows[0]]]
        pointer = tail["comm"]
        if isinstance(pointer, int):
            yield _CallGroup((int(process_ids[rows[0]]), pointer), rows, tail["rank_count"])
