"""Arguments of communication. In: JSON texts of events' arguments. Out: frames of raw.collective and raw.argument.

Idea: the text is stored as written and the known keys of collectives are read from it, each on its own. Calls of one
collective differ in little but numbers that count them: but for these, each distinct text is read once. Of units that
a scanner in C has read only these distinct texts come here.
Keys seen in PyTorch 2.3 to 2.13. Not handled: arguments that are no JSON object (stored, but not read).
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw, field

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.json_values import NO_TOKEN, UNDECODABLE
from traceforge.reading.lenient import BEYOND_RANKS, integer_of, text_of
from traceforge.records import Batch
from traceforge.vocabulary import vocabulary

if TYPE_CHECKING:
    import polars as pl

_Value = int | str | bool | None


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


COMMUNICATION = re.compile(
    "|".join([*vocabulary().collective_libraries, "gloo", "c10d", "mpi:", "ucc:", "record_param_comms"]), re.IGNORECASE
)
"""Found in the names of events of communication."""
COLLECTIVE_KEYS = ("Collective name", "Process Group Name", "Process Group Ranks", "In msg nelems")
_COLLECTIVE_KEY = re.compile(b"|".join(f'"{key}"'.encode() for key in COLLECTIVE_KEYS))
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
# Numbers that differ from call to call: identifiers, of no account here, and the sequence number.
_PASSING = re.compile(
    rb'"(?:Seq|External id|correlation|Record function id|Ev Idx)"\s*:\s*(?:0|[1-9]\d{0,17})(?=[,}\s])'
)
_PASSED = b'"":0'  # a member in the place of each, so that no other text becomes the same
_SEQUENCE_KEY = b'"Seq"'
_SEQUENCE = re.compile(rb'"Seq"\s*:\s*(0|[1-9]\d{0,17})(?=[,}\s])')
# Distinct texts that are remembered; of a file in which all differ, more would only take memory.
_MOST_KNOWN = 16_384
_TRUTHS = {b"1": True, b"true": True, b"0": False, b"false": False}
_NOT_OWN = -1
_decoder = msgspec.json.Decoder(_CollectiveArgs)


@dataclass(frozen=True, slots=True)
class _Call:
    """What a text of arguments says.

    Attributes:
        place: of its values among those of all distinct texts; None where they are no values of a collective.
        problems: codes of values that cannot be used.
        is_numbered: whether the text states a sequence number, which is that of the event's own text.
    """

    place: int | None
    problems: tuple[str, ...] = ()
    is_numbered: bool = False


class CommunicationArgs:
    """Collects arguments until `flush` makes frames of them.

    Args:
        keep_all: store the arguments of every event, not only of communication.
    """

    def __init__(self, keep_all: bool, issues: IssueLog) -> None:
        self._keep_all = keep_all
        self._issues = issues
        self._text_ids: list[int] = []
        self._texts: list[str] = []
        self._known: dict[tuple[bytes, bool], _Call] = {}
        self._scanned: list[_Call] = []
        self._values: list[tuple[_Value, ...]] = []
        # Of each collective's event: its number, which values, and its own sequence number or `_NOT_OWN`.
        self._calls: list[tuple[int, int, int]] = []

    @property
    def keeps_all(self) -> bool:
        """Whether the arguments of every event are stored."""
        return self._keep_all

    @staticmethod
    def is_named(name: str) -> bool:
        """Whether an event of this name is of communication."""
        return COMMUNICATION.search(name) is not None

    def is_wanted(self, name: str, keys: Collection[str]) -> bool:
        """Whether the arguments of an event are to be added, by its name and theirs."""
        return self._keep_all or self.is_named(name) or any(key in keys for key in COLLECTIVE_KEYS)

    def add_text(self, event_id: int, text: bytes, *, is_communication: bool) -> None:
        """Take the arguments of one event."""
        if self._keep_all or is_communication:
            self._text_ids.append(event_id)
            self._texts.append(text.decode("utf-8", "replace"))
        if _COLLECTIVE_KEY.search(text):
            self._add_collective(event_id, text)

    def add_calls(self, new: Sequence[tuple[bytes, int]], calls: npt.NDArray[np.int64]) -> None:
        """Take the calls of a unit that the scanner in C has read.

        Args:
            new: text and sequence number of calls unlike those before; -1 where there is none that may differ.
            calls: event, place among all unlike ones, and sequence number (-1 likewise) of each; shape (calls, 3).
        """
        for text, number in new:
            self._scanned.append(self._read(text, None if number < 0 else number))
        found = [(event_id, self._scanned[place], number) for event_id, place, number in calls.tolist()]
        for event_id, call, number in found:
            if call.problems:
                self._count_problems(call, event_id)
            if call.place is not None:
                self._calls.append((event_id, call.place, number))

    def _count_problems(self, call: _Call, event_id: int) -> None:
        for code in call.problems:
            self._issues.add(code, at=f"event {event_id}")

    def _add_collective(self, event_id: int, text: bytes) -> None:
        numbers = _SEQUENCE.findall(text) if _SEQUENCE_KEY in text else []
        # Of an object within, or of a key with an escape, a number that is cut out does not tell whose it was.
        is_flat = text.count(b"{") == 1 and b"\\" not in text
        is_plain = is_flat and len(numbers) < 2 and (not numbers or text.count(_SEQUENCE_KEY) == 1)
        key = _PASSING.sub(_PASSED, text) if is_plain else text, bool(numbers)
        call = self._known.get(key)
        if call is None:
            call = self._known[key] = self._read(text, int(numbers[0]) if is_plain and numbers else None)
        self._count_problems(call, event_id)
        if call.place is not None:
            self._calls.append((event_id, call.place, int(numbers[0]) if call.is_numbered else _NOT_OWN))

    def _read(self, text: bytes, number: int | None) -> _Call:
        """What a text says.

        Args:
            number: the only sequence number in it that may differ in texts that are otherwise the same.
        """
        try:
            args = _decoder.decode(text)
        except UNDECODABLE:
            return _Call(None)
        problems: list[str] = []
        values = {name: _value(name, bytes(getattr(args, name)), problems) for name in args.__struct_fields__}
        is_numbered = number is not None and values["sequence"] == number
        self._values.append(tuple((values | {"sequence": None} if is_numbered else values).values()))
        return _Call(len(self._values) - 1, tuple(problems), is_numbered)

    def flush(self, scanned: "pl.DataFrame | None" = None) -> list[Batch]:
        """The collected rows, if any.

        Args:
            scanned: rows of raw.argument that the scanner in C has kept since the last time.
        """
        import polars as pl

        batches = []
        if self._texts:
            schema = {"event_id": pl.Int64, "args": pl.String}
            own = pl.DataFrame([self._text_ids, self._texts], schema=schema)
            scanned = own if scanned is None else pl.concat([own, scanned]).sort("event_id")
        if scanned is not None:
            batches.append(Batch("raw.argument", scanned))
        if self._calls:
            batches.append(Batch("raw.collective", self._collectives(np.array(self._calls, dtype=np.int64))))
        self._text_ids, self._texts, self._calls = [], [], []
        return batches

    def forget_many(self) -> bool:
        """Forget distinct texts where there are many; whether that was so. Only directly after `flush`."""
        is_full = len(self._values) > _MOST_KNOWN
        if is_full:
            self._known, self._scanned, self._values = {}, [], []
        return is_full

    def _collectives(self, calls: npt.NDArray[np.int64]) -> "pl.DataFrame":
        import polars as pl

        dtypes = {_INT64_BITS: pl.Int64, _ELEMENT_BITS: pl.Int64, _INT32_BITS: pl.Int32}
        schema: dict[str, type[pl.DataType]] = {
            name: dtypes[_BITS[name]] if name in _BITS else pl.String for name in _CollectiveArgs.__struct_fields__
        }
        schema["is_asynchronous"] = pl.Boolean
        values = pl.DataFrame(self._values, schema=schema, orient="row")[calls[:, 1]]
        event_ids, own = pl.Series("event_id", calls[:, 0]), pl.Series("sequence", calls[:, 2])
        is_own = pl.Series(calls[:, 2] != _NOT_OWN)
        return values.with_columns(own.zip_with(is_own, values["sequence"])).insert_column(0, event_ids)


def _value(name: str, token: bytes, problems: list[str]) -> _Value:
    """The value of a key; NULL, and a code among the problems, where it cannot be used."""
    if token in _NOTHING:
        return None
    if name == "is_asynchronous":
        truth = _TRUTHS.get(token.strip(b'"').lower())
        if truth is None:
            problems.append("wrong_type")
        return truth
    if name == "process_group_ranks" and BEYOND_RANKS.search(token):
        problems.append("out_of_range")
        return None
    if name not in _BITS:
        return text_of(token)
    number = integer_of(token)
    if number is None:
        problems.append("wrong_type")
    elif not -(2 ** _BITS[name]) <= number < 2 ** _BITS[name]:
        problems.append("out_of_range")
        return None
    return number
