"""Arguments of communication. In: `EventUnit`s. Out: frames of raw.collective and raw.argument.

Idea: only units that hold a communication event are looked at a second time, for the raw text of the arguments; the
text is stored as written and the known keys of collectives are read from it, each on its own.
Keys seen in PyTorch 2.3 to 2.13. Not handled: arguments that are no JSON object (stored, but not read).
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Raw, field

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import NO_TOKEN, UNDECODABLE
from traceforge.reading.lenient import BEYOND_RANKS, integer_of, text_of
from traceforge.records import Batch
from traceforge.sources.kineto.decode import EventUnit
from traceforge.sources.kineto.kinds import Flag, FlagArray

if TYPE_CHECKING:
    import polars as pl

_Row = tuple[int | str | bool | None, ...]


class _CollectiveArgs(msgspec.Struct, gc=False):
    collective_name: Raw = field(default=NO_TOKEN, name="Collective name")
    process_group_name: Raw = field(default=NO_TOKEN, name="Process Group Name")
    process_group_description: Raw = field(default=NO_TOKEN, name="Process Group Description")
    process_group_ranks: Raw = field(default=NO_TOKEN, name="Process Group Ranks")
    group_size: Raw = field(default=NO_TOKEN, name="Group size")
    in_elements: Raw = field(default=NO_TOKEN, name="In msg nelems")
    out_elements: Raw = field(default=NO_TOKEN, name="Out msg nelems")
    dtype: Raw = NO_TOKEN
    in_split: Raw = field(default=NO_TOKEN, name="In split size")
    out_split: Raw = field(default=NO_TOKEN, name="Out split size")
    sequence: Raw = field(default=NO_TOKEN, name="Seq")
    is_asynchronous: Raw = field(default=NO_TOKEN, name="Is asynchronized op")
    group_rank: Raw = field(default=NO_TOKEN, name="Rank")
    global_rank_start: Raw = field(default=NO_TOKEN, name="Global rank start")
    global_rank_stride: Raw = field(default=NO_TOKEN, name="Global rank stride")


_COLLECTIVE_KEY = re.compile(rb'"(?:Collective name|Process Group (?:Name|Ranks)|In msg nelems)"')
_NOTHING = (b"", b"null")
_INT64_BITS, _INT32_BITS = 63, 31
_ELEMENT_BITS = 48  # 281 trillion elements: sums of sizes still fit their columns
_BITS = {
    "in_elements": _ELEMENT_BITS,
    "out_elements": _ELEMENT_BITS,
    "sequence": _INT64_BITS,
    "group_size": _INT32_BITS,
    "group_rank": _INT32_BITS,
    "global_rank_start": _INT32_BITS,
    "global_rank_stride": _INT32_BITS,
}
_TRUTHS = {b"1": True, b"true": True, b"0": False, b"false": False}
_decoder = msgspec.json.Decoder(_CollectiveArgs)


class CommunicationArgs:
    """Collects arguments until `flush` makes frames of them.

    Args:
        keep_all: store the arguments of every event, not only of communication.
    """

    def __init__(self, keep_all: bool, issues: IssueLog) -> None:
        self._keep_all = keep_all
        self._issues = issues
        self._texts: list[tuple[int, str]] = []
        self._rows: list[_Row] = []

    def add(self, unit: EventUnit, flags: FlagArray) -> None:
        """Take the arguments of a unit, whose events have the given `Flag`s."""
        places = self._places(unit, flags)
        if not places:
            return
        texts, event_ids = unit.args_texts(), unit.event_ids()
        for place in places:
            text = bytes(texts[place])
            if text not in _NOTHING:
                self.add_text(int(event_ids[place]), int(flags[place]), text)

    def add_text(self, event_id: int, flags: int, text: bytes) -> None:
        """Take the arguments of one event, which has the given `Flag`s."""
        if self._keep_all or flags & Flag.COMMUNICATION:
            self._texts.append((event_id, text.decode("utf-8", "replace")))
        if _COLLECTIVE_KEY.search(text):
            self._add_collective(event_id, text)

    def _places(self, unit: EventUnit, flags: FlagArray) -> Sequence[int]:
        """Which events may have arguments to be looked at."""
        if self._keep_all:
            return range(len(flags))
        wanted = (flags & Flag.COMMUNICATION) != 0
        collectives = [args.collective for args in unit.args]
        if collectives.count(NO_TOKEN) < len(collectives):
            wanted |= [collective is not NO_TOKEN for collective in collectives]
        return np.flatnonzero(wanted).tolist()

    def _add_collective(self, event_id: int, text: bytes) -> None:
        try:
            args = _decoder.decode(text)
        except UNDECODABLE:
            return
        values = (self._value(name, bytes(getattr(args, name)), event_id) for name in args.__struct_fields__)
        self._rows.append((event_id, *values))

    def _value(self, name: str, token: bytes, event_id: int) -> int | str | bool | None:
        if token in (b"", b"null"):
            return None
        if name == "is_asynchronous":
            truth = _TRUTHS.get(token.strip(b'"').lower())
            return self._usable("wrong_type", event_id, truth, truth is not None)
        if name == "process_group_ranks" and BEYOND_RANKS.search(token):
            return self._usable("out_of_range", event_id, None, False)
        if name not in _BITS:
            return text_of(token)
        number = integer_of(token)
        if number is None:
            return self._usable("wrong_type", event_id, None, False)
        fits = -(2 ** _BITS[name]) <= number < 2 ** _BITS[name]
        return self._usable("out_of_range", event_id, number, fits)

    def _usable(self, code: str, event_id: int, value: int | None, is_usable: bool) -> int | None:
        """The value; NULL and an issue where it cannot be used."""
        if is_usable:
            return value
        self._issues.add(code, at=f"event {event_id}")
        return None

    def flush(self) -> list[Batch]:
        """The collected rows, if any."""
        import polars as pl

        batches = []
        if self._texts:
            schema = {"event_id": pl.Int64, "args": pl.String}
            batches.append(Batch("raw.argument", pl.DataFrame(self._texts, schema=schema, orient="row")))
        if self._rows:
            batches.append(Batch("raw.collective", self._collectives()))
        self._texts, self._rows = [], []
        return batches

    def _collectives(self) -> "pl.DataFrame":
        import polars as pl

        dtypes = {_INT64_BITS: pl.Int64, _ELEMENT_BITS: pl.Int64, _INT32_BITS: pl.Int32}
        schema: dict[str, type[pl.DataType]] = {"event_id": pl.Int64}
        for name in _CollectiveArgs.__struct_fields__:
            schema[name] = dtypes[_BITS[name]] if name in _BITS else pl.String
        schema["is_asynchronous"] = pl.Boolean
        return pl.DataFrame(self._rows, schema=schema, orient="row")
