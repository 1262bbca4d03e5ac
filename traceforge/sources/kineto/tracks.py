"""Processes and threads of one file. In: pid and tid values, metadata events. Out: rows of raw.track.

Idea: a track is a (process, thread) pair as text, numbered in order of appearance; names are joined on at the end,
because metadata events may stand anywhere. Later names replace earlier ones, as in Chrome's viewer. Memory is bounded:
events of threads beyond `MOST_TRACKS` are kept without theirs, which is counted, and a name is cut at `LONGEST_TEXT`.
Not handled: sort indices, which only order a display.
"""

from typing import TYPE_CHECKING, TypeVar

from msgspec import Raw

from traceforge.reading.issue_log import IssueLog
from traceforge.reading.lenient import text_of
from traceforge.sources.kineto.decode import Args

if TYPE_CHECKING:
    import polars as pl

MOST_TRACKS = 65_536
LONGEST_TEXT = 16_384
NAMING_EVENTS = frozenset({"process_name", "process_labels", "thread_name"})


Key = TypeVar("Key")


def shortened(text: str | None) -> str | None:
    """A text of at most `LONGEST_TEXT` characters."""
    return text if text is None else text[:LONGEST_TEXT]


def _as_text(value: int | str | None) -> str | None:
    return None if value is None else str(value)[:LONGEST_TEXT]


class TrackNames:
    """Numbers tracks and remembers their names."""

    def __init__(self, issues: IssueLog) -> None:
        self._issues = issues
        self._ids: dict[tuple[str | None, str | None], int] = {}
        self._process_names: dict[str | None, str | None] = {}
        self._process_labels: dict[str | None, str | None] = {}
        self._thread_names: dict[tuple[str | None, str | None], str | None] = {}

    def id_of(self, pid: int | str | None, tid: int | str | None) -> int | None:
        """The number of a track, or None where an event names neither process nor thread."""
        if pid is None and tid is None:
            return None
        track = _as_text(pid), _as_text(tid)
        if len(self._ids) >= MOST_TRACKS and track not in self._ids:
            self._issues.add("too_many_tracks")
            return None
        return self._ids.setdefault(track, len(self._ids))

    def name(self, event_name: str | None, pid: int | str | None, tid: int | str | None, args: Args) -> None:
        """Learn a name from a metadata event (one of `NAMING_EVENTS`)."""
        process, thread = _as_text(pid), _as_text(tid)
        if event_name == "process_name":
            _put(self._process_names, process, args.name)
        elif event_name == "process_labels":
            _put(self._process_labels, process, args.labels)
        elif event_name == "thread_name":
            _put(self._thread_names, (process, thread), args.name)

    def has_process(self, name: str) -> bool:
        """Whether a process is called so."""
        return name in self._process_names.values()

    def count_labelled(self, label: str) -> int:
        """How many processes have a label, such as `CPU`."""
        return sum(own == label for own in self._process_labels.values())

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


def _put(names: dict[Key, str | None], key: Key, value: Raw) -> None:
    """Take a name, unless there are as many as there are tracks."""
    if key in names or len(names) < MOST_TRACKS:
        names[key] = shortened(text_of(bytes(value)))
