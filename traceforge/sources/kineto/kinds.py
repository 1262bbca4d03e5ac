"""What recurs from event to event. In: events. Out: one small integer an event, and rows of raw.kineto_kind.

Idea: phase, category, name, process and thread come in few combinations ("kinds"); one dictionary look-up an event
replaces five columns of Python objects, and questions about a name are asked once a kind.
Not handled well: files in which every event has a name of its own (correct, but slower).
"""

import re

import numpy as np
import numpy.typing as npt
import polars as pl

from traceforge.sources.kineto.decode import Event
from traceforge.sources.kineto.tracks import NAMING_EVENTS, Tracks

_COMMUNICATION = re.compile(r"nccl|rccl|hccl|gloo|c10d|mpi:|ucc:|record_param_comms", re.IGNORECASE)
FLOW_PHASES = frozenset("stf")
_LARGEST_TABLE = 16_384

_Kind = tuple[str | None, str | None, str | None, int | str | None, int | str | None]
KindIds = npt.NDArray[np.int32]
FlagArray = npt.NDArray[np.uint8]


class Flag:
    """Answers about a kind of event."""

    METADATA = 1
    NAMES_A_TRACK = 2
    FLOW = 4
    COMMUNICATION = 8


def _flags(phase: str | None, name: str | None) -> int:
    flags = 0
    if phase == "M":
        flags |= Flag.METADATA | (Flag.NAMES_A_TRACK if name in NAMING_EVENTS else 0)
    if phase in FLOW_PHASES:
        flags |= Flag.FLOW
    if name is not None and _COMMUNICATION.search(name):
        flags |= Flag.COMMUNICATION
    return flags


class Kinds:
    """Numbers the kinds of a file's events."""

    def __init__(self, tracks: Tracks) -> None:
        self._tracks = tracks
        self._ids: dict[_Kind, int] = {}
        self._rows: list[tuple[str | None, str | None, str | None, int | None]] = []
        self._flags = bytearray()
        self._first_id = 0

    def ids(self, events: list[Event]) -> list[int]:
        """The kind of every event; `flags` of it can be asked until `flush`."""
        known = self._ids
        try:
            return [known[e.ph, e.cat, e.name, e.pid, e.tid] for e in events]
        except KeyError:
            keys = [(e.ph, e.cat, e.name, e.pid, e.tid) for e in events]
            for key in keys:
                if key not in known:
                    self._learn(key)
            return [known[key] for key in keys]

    def _learn(self, key: _Kind) -> None:
        phase, category, name, pid, tid = key
        self._ids[key] = self._first_id + len(self._flags)
        self._rows.append((phase, category, name, self._tracks.id_of(pid, tid)))
        self._flags.append(_flags(phase, name))

    def flags(self, ids: KindIds) -> FlagArray:
        """`Flag`s of every event."""
        return np.frombuffer(bytes(self._flags), np.uint8)[ids - self._first_id]

    def flush(self) -> pl.DataFrame:
        """Rows of raw.kineto_kind learned since the last flush; a table that has grown large starts anew."""
        schema = {"phase": pl.String, "category": pl.String, "name": pl.String, "track_id": pl.Int32}
        frame = pl.DataFrame(self._rows, schema=schema, orient="row")
        first_id = self._first_id + len(self._flags) - len(self._rows)
        ids = np.arange(first_id, first_id + len(self._rows), dtype=np.int32)
        self._rows = []
        if len(self._ids) > _LARGEST_TABLE:
            self._ids.clear()
            self._first_id += len(self._flags)
            self._flags.clear()
        return frame.insert_column(0, pl.Series("kind_id", ids))
