"""Events of a profiler as rows. In: frames with plain names. Out: rows of raw.event_kind, raw.occurrence, raw.track.

Idea: what recurs from event to event (category, name, thread) becomes a small integer, batch by batch, so that a source
needs to know only what its format says of an event. Categories are Kineto's words (see `vocabulary.toml`).
Not handled: arguments of collectives, which a source emits itself.
"""

from collections.abc import Callable

import polars as pl

from traceforge.records import Batch

COMPLETE = "X"
INSTANT = "i"
LATEST_NS = 2**62
"""Beyond, no clock shows it, and the sum of two times would not fit its column."""
_SAID = ("phase", "category", "name", "process", "thread")
_MEASURED: dict[str, type[pl.DataType]] = {
    "raw_start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "correlation": pl.Int64,
    "external_id": pl.Int64,
    "stream": pl.Int32,
    "device": pl.Int32,
    "size_bytes": pl.Int64,
    "record_function_id": pl.Int64,
}

Track = tuple[str | None, str | None]


def is_time(column: str) -> pl.Expr:
    """Whether a column holds a moment, ns, to which others can be added."""
    return pl.col(column).is_between(-LATEST_NS, LATEST_NS, closed="none").fill_null(value=False)


class TimelineRows:
    """Numbers events, kinds and tracks of one profile, and hands their rows over.

    Attributes:
        count: events handed over so far.
    """

    def __init__(self, emit: Callable[[Batch], None]) -> None:
        self._emit = emit
        self._kinds: dict[tuple[str | None, ...], int] = {}
        self._tracks: dict[Track, int] = {}
        self._process_names: dict[str | None, str] = {}
        self._thread_names: dict[Track, str] = {}
        self.count = 0

    def add(self, events: pl.DataFrame) -> None:
        """Hand over events, numbered on from the last ones.

        Args:
            events: texts phase, category, name, process, thread, and of `_MEASURED` what the format says; times of
                events that have none are NULL.
        """
        if events.is_empty():
            return
        said = events.select(_SAID).unique(maintain_order=True)
        known = len(self._kinds)
        kind_ids = [self._kinds.setdefault(row, len(self._kinds)) for row in said.rows()]
        self._emit_kinds(known)
        numbered = said.with_columns(kind_id=pl.Series(kind_ids, dtype=pl.Int32))
        rows = events.join(numbered, on=list(_SAID), nulls_equal=True, maintain_order="left")
        measured = [
            pl.col(name).cast(kind) if name in rows.columns else pl.lit(None, dtype=kind).alias(name)
            for name, kind in _MEASURED.items()
        ]
        ids = pl.int_range(self.count, self.count + rows.height, dtype=pl.Int64, eager=True).alias("event_id")
        self._emit(Batch("raw.occurrence", rows.select(ids, "kind_id", *measured)))
        self.count += rows.height

    def _emit_kinds(self, known: int) -> None:
        """Hand over the kinds from number `known` on."""
        new = list(self._kinds)[known:]
        if not new:
            return
        tracks = [None if kind[3:] == (None, None) else self._track(kind[3], kind[4]) for kind in new]
        schema = {"kind_id": pl.Int32, "phase": pl.String, "category": pl.String, "name": pl.String}
        rows = [(known + number, *kind[:3]) for number, kind in enumerate(new)]
        frame = pl.DataFrame(rows, schema=schema, orient="row")
        self._emit(Batch("raw.event_kind", frame.with_columns(track_id=pl.Series(tracks, dtype=pl.Int32))))

    def _track(self, process: str | None, thread: str | None) -> int:
        return self._tracks.setdefault((process, thread), len(self._tracks))

    def name_process(self, process: str, name: str) -> None:
        """Give a process its name."""
        self._process_names[process] = name

    def name_thread(self, process: str, thread: str, name: str) -> None:
        """Give a thread or a stream its name."""
        self._thread_names[process, thread] = name

    def finish(self) -> None:
        """Hand over the tracks that some event is on."""
        if not self._tracks:
            return
        rows = [
            (number, *track, self._process_names.get(track[0]), self._thread_names.get(track))
            for track, number in self._tracks.items()
        ]
        texts = ("process", "thread", "process_name", "thread_name")
        schema = {"track_id": pl.Int32, **dict.fromkeys(texts, pl.String)}
        self._emit(Batch("raw.track", pl.DataFrame(rows, schema=schema, orient="row")))
