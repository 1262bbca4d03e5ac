"""Ranks and files in batches. In: align.rank and the tables of batches. Out: what is read together; what a query finds.

Idea: a query for each rank costs more than what it reads where ranks have few events, and all ranks at once need memory
for all; so as many are read at once as fit, and one alone where it is large. What fits is decided once, when
align.rank_batch and file_batch are made: whoever has only one row of them makes one part of a table (see
`store.part_task`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

import numpy as np
import polars as pl

from traceforge.store.database import Store

_RANKS = """
SELECT r.run_id, r.rank, r.source_id, r.has_device, COALESCE(s.stored_count, 0)
FROM align.rank AS r
JOIN meta.source AS s USING (source_id)
ORDER BY r.run_id, r.rank
"""

_BATCHES = """
SELECT b.run_id, b.first_rank, b.most_events, r.rank, r.source_id, r.has_device
FROM align.rank_batch AS b
JOIN align.rank AS r ON r.run_id = b.run_id AND r.rank BETWEEN b.first_rank AND b.last_rank
ORDER BY b.run_id, r.rank
"""

_FILES = "SELECT source_id, COALESCE(stored_count, 0) FROM meta.source ORDER BY source_id"

_MOST_EVENTS = 500_000
_LARGEST = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class RankFile:
    """A rank of a run and the file used for it."""

    rank: int
    source_id: int
    has_device: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """Rows of a query, those of one file or rank together."""

    frame: pl.DataFrame
    places: Mapping[int, tuple[int, int]]

    def of(self, key: int) -> pl.DataFrame:
        """The rows of one, in the order of the query."""
        return self.frame.slice(*self.place(key))

    def place(self, key: int) -> tuple[int, int]:
        """First row of one in `frame`, and how many it has."""
        return self.places.get(key, (0, 0))


@dataclass(frozen=True, slots=True)
class RankBatch:
    """Some ranks of one run, ascending; and about how many events the file with most of them has."""

    run_id: int
    ranks: Sequence[RankFile]
    most_events: int

    def by_file(self, store: Store, sql: str, parameters: Sequence[object] = ()) -> Parts:
        """What a query finds for each file.

        Args:
            sql: has a column `source_id`. `$1` are the files; `$2` and `$3`, the first and the last of them, tell which
                blocks of a large table to read; the parameters follow.
            parameters: from `$4` on.
        """
        files = [one.source_id for one in self.ranks]
        with store.narrowed(min(files), max(files)):
            return _parts(store.query(sql, [files, min(files), max(files), *parameters]), "source_id")

    def in_pieces(self, store: Store, sql: str, parameters: Sequence[object] = ()) -> Iterator[Parts]:
        """What a query finds for each file, some of its events at a time; all at once unless a rank is large.

        Args:
            sql: as in `by_file`; `$4` and `$5` are the first and the last event_id.
            parameters: from `$6` on.
        """
        firsts = range(0, max(self.most_events, 1), _MOST_EVENTS)
        for first in firsts:
            last = first + _MOST_EVENTS - 1 if first != firsts[-1] else _LARGEST
            yield self.by_file(store, sql, [first, last, *parameters])

    def by_rank(self, store: Store, sql: str, parameters: Sequence[object] = ()) -> Parts:
        """What a query finds for each rank.

        Args:
            sql: has a column `rank`. `$1` is the run, `$2` and `$3` are the first and the last rank; the parameters
                follow.
            parameters: from `$4` on.
        """
        found = store.query(sql, [self.run_id, self.ranks[0].rank, self.ranks[-1].rank, *parameters])
        return _parts(found, "rank")


def rank_batches(store: Store) -> Iterator[RankBatch]:
    """Ranks of one run at a time, in order, in the batches of align.rank_batch."""
    for (run_id, _, most_events), ranks in groupby(store.rows(_BATCHES), key=lambda row: row[:3]):
        yield RankBatch(int(run_id), [RankFile(*row[3:]) for row in ranks], most_events)


def planned_batches(store: Store, most_events: int = _MOST_EVENTS) -> Iterator[RankBatch]:
    """Ranks of one run at a time, in order, in batches of at most so many events, or of one rank."""
    run, batch, counts = None, list[RankFile](), list[int]()
    for run_id, rank, source_id, has_device, count in store.rows(_RANKS):
        if run is not None and (sum(counts) + count > most_events or run_id != run):
            yield RankBatch(run, batch, max(counts))
            batch, counts = [], []
        run = int(run_id)
        batch.append(RankFile(rank, source_id, has_device))
        counts.append(count)
    if run is not None:
        yield RankBatch(run, batch, max(counts))


def file_batches(store: Store) -> Iterator[tuple[int, int]]:
    """All files in order, in the batches of align.file_batch: the first and the last of each."""
    yield from store.rows("SELECT first_source_id, last_source_id FROM align.file_batch ORDER BY ALL")


def planned_files(store: Store, most_events: int = _MOST_EVENTS) -> Iterator[tuple[int, int]]:
    """All files in order, in batches of at most so many events, or of one file: the first and the last of each."""
    first, last, events = None, -1, 0
    for source_id, count in store.query(_FILES).iter_rows():
        if first is not None and events + count > most_events:
            yield first, last
            first, events = None, 0
        first, last, events = int(source_id) if first is None else first, int(source_id), events + count
    if first is not None:
        yield first, last


def _parts(found: pl.DataFrame, key: str) -> Parts:
    # What is read from one table comes in the order in which it was written, which is mostly that of files.
    ordered = found if found[key].is_sorted() else found.sort(key, maintain_order=True)
    runs = ordered[key].rle().struct
    lengths = runs.field("len").to_list()
    firsts = accumulate(lengths[:-1], initial=0)
    return Parts(ordered, dict(zip(runs.field("value").to_list(), zip(firsts, lengths, strict=False), strict=False)))
