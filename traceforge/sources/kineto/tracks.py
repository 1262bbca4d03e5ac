"""Processes and threads of one file. In: pid and tid values, metadata events. Out: rows of raw.track.

Idea: a track is a (process, thread) pair as text, numbered in order of appearance; names are joined on at the end,
because metadata events may stand anywhere. Later names replace earlier ones, as in Chrome's viewer.
Not handled: sort indices, which only order a display.
"""

from typing import TYPE_CHECKING

from traceforge.reading.lenient import text_of
from traceforge.sources.kineto.decode import Args

if TYPE_CHECKING:
    import polars as pl

NAMING_EVENTS = frozenset({"process_name", "process_labels", "thread_name"})


def _as_text(value: int | str | None) -> str | None:
    return None if value is None else str(value)


class TrackNames:
    """Numbers tracks and remembers their names."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str | None, str | None], int] = {}
        self._process_names: dict[str | None, str | None] = {}
        self._process_labels: dict[str | None, str | None] = {}
        self._thread_names: dict[tuple[str | None, str | None], str | None] = {}

    def id_of(self, pid: int | str | None, tid: int | str | None) -> int | None:
        """The number of a track, or None where an event names neither process nor thread."""
        if pid is None and tid is None:
            return None
        return self._ids.setdefault((_as_text(pid), _as_text(tid)), len(self._ids))

    def name(self, event_name: str | None, pid: int | str | None, tid: int | str | None, args: Args) -> None:
        """Learn a name from a metadata event (one of `NAMING_EVENTS`)."""
        process, thread = _as_text(pid), _as_text(tid)
        if event_name == "process_name":
            self._process_names[process] = text_of(bytes(args.name))
        elif event_name == "process_labels":
            self._process_labels[process] = text_of(bytes(args.labels))
        elif event_name == "thread_name":
            self._thread_names[process, thread] = text_of(bytes(args.name))

    def frame(self) -> "pl.DataFrame":
        """All tracks as rows of raw.track."""
        import polars as pl

        tracks = list(self._ids)
        return pl.DataFrame(
            {
                "track_id": pl.Series(range(len(tracks)), dtype=pl.Int32),
                "process": pl.Series([process for process, _ in tracks], dtype=pl.String),
                "thread": pl.Series([thread for _, thread in tracks], dtype=pl.String),
                "process_name": pl.Series([self._process_names.get(process) for process, _ in tracks], dtype=pl.String),
                "process_labels": pl.Series(
                    [self._process_labels.get(process) for process, _ in tracks], dtype=pl.String
                ),
                "thread_name": pl.Series([self._thread_names.get(track) for track in tracks], dtype=pl.String),
            }
        )
