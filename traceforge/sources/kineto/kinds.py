"""What recurs from event to event. In: events. Out: one small integer an event, and rows of raw.event_kind.

Idea: phase, category, name, process and thread come in few combinations ("kinds"); one dictionary look-up an event
replaces five columns of Python objects, and questions about a name are asked once a kind. A text beyond
`LONGEST_TEXT` is cut, which is counted: no profiler writes one, and whatever reads it later would take for ever. So are
names beyond the first `MOST_NAMES`, or `MOST_NAME_CHARACTERS` of them: their events are kept under `OTHER_NAMES`.
"""

import hashlib
from typing import cast

import numpy as np
import numpy.typing as npt
import polars as pl

from traceforge.reading.communication_args import CommunicationArgs
from traceforge.reading.issue_log import IssueLog
from traceforge.reading.operation_inputs import OperationInputs
from traceforge.sources.kineto.decode import Event
from traceforge.sources.kineto.tracks import LONGEST_TEXT, NAMING_EVENTS, TrackNames, shortened
from traceforge.vocabulary import vocabulary

FLOW_PHASES = frozenset("stf")
_BEGIN, _COMPLETE = "B", "X"
_TIMED_BY_HOST = frozenset({"cpu_op", "user_annotation", "python_function"})
_ON_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"})
_OF_DRIVER = frozenset({"cuda_runtime", "cuda_driver"})
MOST_NAMES = 131_072
MOST_NAME_CHARACTERS = 32 * 1024 * 1024
OTHER_NAMES = "(other names)"
_LARGEST_TABLE = 16_384

KindKey = tuple[str | None, str | None, str | None, int | str | None, int | str | None]
"""Phase, category, name, pid and tid."""
KindRow = tuple[str | None, str | None, str | None, int | None]
"""Phase, category, name and track."""
KindIds = npt.NDArray[np.int32]
FlagArray = npt.NDArray[np.uint8]


class Flag:
    """Answers about a kind of event."""

    METADATA = 1
    NAMES_A_TRACK = 2
    FLOW = 4
    COMMUNICATION = 8
    SHAPED = 16
    ON_HOST = 32
    ON_DEVICE = 64
    OF_DRIVER = 128


def _is_short(key: KindKey) -> bool:
    return all(type(part) is not str or len(part) <= LONGEST_TEXT for part in key)


def _distinct(key: KindKey) -> KindKey:
    """A key that holds no more of its long texts than tells them from others; longer than `LONGEST_TEXT` still."""
    phase, category, name, pid, tid = (_shortened(part) if isinstance(part, str) else part for part in key)
    return cast(KindKey, (phase, category, name, pid, tid))


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return text[:LONGEST_TEXT] + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _flags(phase: str | None, category: str | None, name: str | None) -> int:
    flags = 0
    if phase == "M":
        flags |= Flag.METADATA | (Flag.NAMES_A_TRACK if name in NAMING_EVENTS else 0)
    if phase in FLOW_PHASES:
        flags |= Flag.FLOW
    if name is not None and CommunicationArgs.is_named(name):
        flags |= Flag.COMMUNICATION
    if OperationInputs.is_wanted(phase, category, name):
        flags |= Flag.SHAPED
    if phase == _COMPLETE:
        flags |= Flag.ON_HOST if category in _TIMED_BY_HOST else 0
        flags |= Flag.ON_DEVICE if category in _ON_DEVICE else 0
        flags |= Flag.OF_DRIVER if category in _OF_DRIVER else 0
    return flags


class Kinds:
    """Numbers the kinds of a file's events.

    Attributes:
        first_id: the first number of the table in use; smaller ones are no longer known.
        are_of_pytorch: whether PyTorch's profiler writes the category of any event.
    """

    def __init__(self, tracks: TrackNames, issues: IssueLog) -> None:
        self._tracks = tracks
        self._issues = issues
        self._ids: dict[KindKey, int] = {}
        self._names: set[int] = set()
        self._name_characters = 0
        self._bounded: dict[KindRow, int] = {}
        self._rows: list[KindRow] = []
        self._flags = bytearray()
        self.first_id = 0
        self.are_of_pytorch = False
        self._of_pytorch = vocabulary().known_categories

    def ids(self, events: list[Event]) -> list[int]:
        """The kind of every event; `flags` of it can be asked until `flush`."""
        known = self._ids
        try:
            return [known[e.ph, e.cat, e.name, e.pid, e.tid] for e in events]
        except KeyError:
            return self.ids_of([(e.ph, e.cat, e.name, e.pid, e.tid) for e in events])

    def ids_of(self, keys: list[KindKey]) -> list[int]:
        """The numbers of kinds, known or new."""
        keys = [key if _is_short(key) else _distinct(key) for key in keys]
        for key in keys:
            if key not in self._ids:
                self._learn(key)
        return [self._ids[key] for key in keys]

    def _learn(self, key: KindKey) -> None:
        phase, category, name, pid, tid = key
        next_id = self.first_id + len(self._flags)
        if not _is_short(key):
            self._issues.add("long_text", at=f"kind {next_id}")
            phase, category, name = shortened(phase), shortened(category), shortened(name)
        kept_name, track = self._bounded_name(name, next_id), self._tracks.id_of(pid, tid)
        row = phase, category, kept_name, track
        # What was left out differs from kind to kind, and what is left of it need not be kept twice.
        is_nowhere = track is None and not (pid is None and tid is None)
        is_cut = is_nowhere or kept_name != name
        self._ids[key] = self._bounded.setdefault(row, next_id) if is_cut else next_id
        if self._ids[key] == next_id:
            flags = _flags(phase, category, kept_name)
            self._rows.append(row)
            is_of_pytorch = category in self._of_pytorch
            self.are_of_pytorch = self.are_of_pytorch or is_of_pytorch
            if phase == _BEGIN and is_of_pytorch:
                self._issues.add("begin_and_end", at=f"kind {next_id}")
            self._flags.append(flags & ~Flag.NAMES_A_TRACK if is_nowhere else flags)

    def _bounded_name(self, name: str | None, kind_id: int) -> str | None:
        """A name, unless there are too many others already."""
        if name is None or (told := hash(name)) in self._names:
            return name
        if len(self._names) >= MOST_NAMES or self._name_characters > MOST_NAME_CHARACTERS:
            self._issues.add("too_many_names", at=f"kind {kind_id}")
            return OTHER_NAMES
        self._names.add(told)
        self._name_characters += len(name)
        return name

    def flags(self, ids: KindIds) -> FlagArray:
        """`Flag`s of every event."""
        return np.frombuffer(bytes(self._flags), np.uint8)[ids - self.first_id]

    def flags_of(self, kind_id: int) -> int:
        """`Flag`s of one kind."""
        return self._flags[kind_id - self.first_id]

    def flush(self) -> pl.DataFrame:
        """Rows of raw.event_kind learned since the last flush; a table that has grown large starts anew."""
        schema = {"phase": pl.String, "category": pl.String, "name": pl.String, "track_id": pl.Int32}
        frame = pl.DataFrame(self._rows, schema=schema, orient="row")
        next_id = self.first_id + len(self._flags)
        ids = np.arange(next_id - len(self._rows), next_id, dtype=np.int32)
        self._rows = []
        if len(self._ids) > _LARGEST_TABLE:
            self._ids.clear()
            self._bounded.clear()
            self.first_id += len(self._flags)
            self._flags.clear()
        return frame.insert_column(0, pl.Series("kind_id", ids))
