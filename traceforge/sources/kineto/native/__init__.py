"""Plain events read by a scanner in C. In: units of text. Out: rows of raw.occurrence as Arrow columns.

Idea: nearly all text that profilers write is plain, and for it one pass in C does the work of decode, kinds, columns
and exact_time at once. The scanner judges each unit as a whole: on anything out of the ordinary it declines, nothing of
the unit remains, and the Python modules beside this folder read it as if there were no scanner. So it never repairs,
never guesses, never reports an issue, and answers do not depend on whether it is there.
What needs thought stays in Python: each new kind is decoded and numbered by `Kinds`; the arguments of operations whose
shapes count and of events that name tracks are handed out as text, and those of communication where they are unlike all
before but for numbers that count calls.

The extension is optional: without a C compiler at installation there is none, and the Python modules read everything.
C files in the order in which bytes pass them: json.h, event.c, kinds.c, calls.c, columns.c, texts.c, arrow.c; module.c
is their face.
"""

from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from traceforge.sources.kineto.decode import Args
from traceforge.sources.kineto.kinds import Flag, KindKey, Kinds
from traceforge.sources.kineto.tracks import TrackNames

try:
    from traceforge.sources.kineto.native._scanner import Scanner
except ImportError:
    Scanner = None  # type: ignore[assignment, misc]
else:
    if not hasattr(Scanner, "take_texts"):
        Scanner = None  # type: ignore[assignment, misc]  # built from older sources than these

# The same kind may be written in many ways, each of which the scanner holds; `Kinds` holds it once.
_LARGEST_TEXT = 4 * 1024 * 1024  # one event alone makes a longer one
_MOST_SPELLINGS = 65_536
_ASKS_TEXT, _ASKS_CALL = 1, 2  # as in scanner.h
_text = msgspec.json.Decoder(str | None)
_identifier = msgspec.json.Decoder(int | str | None)
_args = msgspec.json.Decoder(Args)


@dataclass(frozen=True, slots=True)
class ScannedUnit:
    """A unit whose rows the scanner holds.

    Attributes:
        count: its events.
        args: event, kind and text of the arguments of operations with shapes.
        new_calls: text and sequence number of calls of communication unlike those before; -1 where there is none that
            may differ.
        calls: event, place among the unlike ones, and sequence number (-1 likewise) of each call; shape (calls, 3).
    """

    count: int
    args: list[tuple[int, int, bytes]]
    new_calls: list[tuple[bytes, int]]
    calls: npt.NDArray[np.int64]


class NativeColumns:
    """Collects plain units until `flush` makes a frame of them; the counterpart of `EventColumns`."""

    def __init__(self, kinds: Kinds, tracks: TrackNames, keep_all_args: bool) -> None:
        self._scanner = Scanner()
        self._kinds = kinds
        self._tracks = tracks
        self._keep_all_args = keep_all_args
        self._first_kind_id = 0
        self._spellings = 0
        self._naming: dict[int, KindKey] = {}

    @property
    def row_count(self) -> int:
        """Events collected since the last flush."""
        return self._scanner.row_count

    def read(self, text: bytes, first_event_id: int) -> ScannedUnit | None:
        """Read whole events; None, and nothing is changed, where they are not plain."""
        if len(text) > _LARGEST_TEXT:
            return None
        if self._first_kind_id != self._kinds.first_id or self._spellings > _MOST_SPELLINGS:
            self._forget_kinds()
        before = self._scanner.row_count
        new = self._scanner.scan(text, first_event_id)
        if new is None:
            return None
        self._spellings += len(new)
        ids, asks = self._learn([_decoded(tokens) for tokens in new]) if new else ([], b"")
        args, new_calls, calls = self._scanner.settle(ids, asks, self._keep_all_args)
        if self._naming:
            args = [found for found in args if not self._is_name(*found)]
        places = np.frombuffer(calls, np.int64).reshape(-1, 3)
        return ScannedUnit(self._scanner.row_count - before, args, new_calls, places)

    def _forget_kinds(self) -> None:
        self._first_kind_id, self._spellings = self._kinds.first_id, 0
        self._scanner.forget_kinds()
        self._naming.clear()

    def _learn(self, keys: list[KindKey]) -> tuple[list[int], bytes]:
        ids = self._kinds.ids_of(keys)
        flags = [self._kinds.flags_of(kind_id) for kind_id in ids]
        self._naming.update(
            (kind_id, key) for kind_id, key, flag in zip(ids, keys, flags, strict=True) if flag & Flag.NAMES_A_TRACK
        )
        return ids, bytes(_asked(flag) for flag in flags)

    def _is_name(self, _event_id: int, kind_id: int, args: bytes) -> bool:
        """Whether an event names a track; if so, the name is taken."""
        key = self._naming.get(kind_id)
        if key is None:
            return False
        _phase, _category, name, pid, tid = key
        self._tracks.name(name, pid, tid, _args.decode(args))
        return True

    def flush(self) -> pl.DataFrame:
        """The collected events as rows of raw.occurrence, in memory that the scanner filled."""
        return pl.Series(values=_ArrowArray(self._scanner.take())).struct.unnest()

    def flush_texts(self) -> pl.DataFrame | None:
        """The arguments kept of the collected events, as rows of raw.argument; None where there are none."""
        capsules = self._scanner.take_texts()
        return None if capsules is None else pl.Series(values=_ArrowArray(capsules)).struct.unnest()

    def forget_calls(self) -> None:
        """Tell all calls of communication as new from now on."""
        self._scanner.forget_calls()


def native_columns(kinds: Kinds, tracks: TrackNames, keep_all_args: bool) -> NativeColumns | None:
    """Columns that the scanner fills; None where it is not installed."""
    return None if Scanner is None else NativeColumns(kinds, tracks, keep_all_args)


def _asked(flags: int) -> int:
    text = _ASKS_TEXT if flags & (Flag.NAMES_A_TRACK | Flag.SHAPED) else 0
    return text | (_ASKS_CALL if flags & Flag.COMMUNICATION else 0)


def _decoded(tokens: tuple[bytes | None, ...]) -> KindKey:
    phase, category, name, pid, tid = (b"null" if token is None else token for token in tokens)
    return (
        _text.decode(phase),
        _text.decode(category),
        _text.decode(name),
        _identifier.decode(pid),
        _identifier.decode(tid),
    )


class _ArrowArray:
    """Capsules in the form in which polars asks for them."""

    def __init__(self, capsules: tuple[object, object]) -> None:
        self._capsules = capsules

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._capsules
