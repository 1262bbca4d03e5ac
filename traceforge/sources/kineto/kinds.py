"""What recurs from event to event. In: events. Out: one small integer an event, and columns made from it.

Idea: phase, category, name, process and thread come in few combinations ("kinds"); one dictionary look-up an event
replaces five columns of Python objects, and questions about a name are asked once a kind.
Not handled: files in which every event has a name of its own are read, only slower.
"""

import re

import numpy as np
import polars as pl

from traceforge.sources.kineto.decode import Event
from traceforge.sources.kineto.exact_time import BoolArray
from traceforge.sources.kineto.tracks import NAMING_EVENTS, Tracks

import numpy.typing as npt

_COMMUNICATION = re.compile(r"nccl|rccl|hccl|gloo|c10d|mpi:|ucc:|record_param_comms", re.IGNORECASE)
_FLOW_PHASES = frozenset("stf")
_LARGEST_TABLE = 16_384
_Key = tuple[str | None, str | None, str | None, int | str | None, int | str | None]

KindIds = npt.NDArray[np.int32]


class Kinds:
    """Numbers the kinds of a file's events; forgets them when they become too many."""

    def __init__(self, tracks: Tracks) -> None:
        self._tracks = tracks
        self._ids: dict[_Key, int] = {}
        self._reset_columns()

    def _reset_columns(self) -> None:
        self._track_ids: list[int | None] = []
        self._flags: list[tuple[bool, bool, bool, bool]] = []

    def ids(self, events: list[Event]) -> list[int]:
        """The kind of every event."""
        known = self._ids
        try:
            return [known[e.ph, e.cat, e.name, e.pid, e.tid] for e in events]
        except KeyError:
            for event in events:
                self._learn(event)
            return [known[e.ph, e.cat, e.name, e.pid, e.tid] for e in events]

    def _learn(self, event: Event) -> None:
        key = (event.ph, event.cat, event.name, event.pid, event.tid)
        if key in self._ids:
            return
        self._ids[key] = len(self._ids)
        self._track_ids.append(self._tracks.id_of(event.pid, event.tid))
        metadata = event.ph == "M"
        self._flags.append(
            (
                metadata,
                metadata and event.name in NAMING_EVENTS,
                event.ph in _FLOW_PHASES,
                event.name is not None and _COMMUNICATION.search(event.name) is not None,
            )
        )

    def flags(self, ids: KindIds) -> "Flags":
        """Answers about each event."""
        table = np.array(self._flags, dtype=np.bool_).reshape(-1, 4)
        return Flags(*(table[ids, column] for column in range(4)))
