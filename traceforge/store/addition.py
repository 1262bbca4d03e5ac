"""Files that were read, added to a run. In: their rows. Out: meta.source, meta.issue and raw.*, and what failed.

Idea: to begin and end a transaction and to append a few rows to each of ten tables costs more than to read a small
file, so small files wait for one another and are added together. A file that cannot be added fails alone: the others
of its transaction are added again without it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from traceforge.errors import TraceforgeError
from traceforge.files import size_bytes
from traceforge.records import SourceSummary
from traceforge.store.database import Store
from traceforge.store.facts import row_storage
from traceforge.store.failures import failure_of
from traceforge.store.issues import issue_rows
from traceforge.store.naming import identify
from traceforge.store.replacement import cut_off_files, remove_cut_off
from traceforge.store.spool import Rows, SourceRows, Spooled

_MOST_WAITING_BYTES = 32 * 1024 * 1024
_MOST_WAITING = 256

_LAST = "SELECT COALESCE(MAX(source_id), -1) FROM meta.source"
_WORLD_SIZE = "UPDATE meta.run SET world_size = GREATEST(COALESCE(world_size, 0), ?) WHERE run_id = ?"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file, the hash of its bytes, its name in the database, and its size where it was read elsewhere."""

    path: Path
    content_hash: str
    shown_path: str
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class _Added:
    """A file whose rows are in the database."""

    file: InputFile
    source_id: int
    summary: SourceSummary


class Addition:
    """Adds files to a run, in order; small ones wait until `flush`.

    Args:
        in_one: all files wait until `flush`, so that all are added or none.

    Attributes:
        added: files that are in the database.
        failed: files that are not, with the error.
    """

    def __init__(
        self, store: Store, run_id: int, rank_pattern: re.Pattern[str] | None, *, in_one: bool = False
    ) -> None:
        self._store = store
        self._in_one = in_one
        self._run_id = run_id
        self._rank_pattern = rank_pattern
        self._facts = row_storage(store)
        self._former = cut_off_files(store, run_id)
        self._waiting: list[tuple[InputFile, SourceRows]] = []
        self._waiting_bytes = 0
        self.added: list[Path] = []
        self.failed: list[tuple[Path, TraceforgeError]] = []

    def add(self, file: InputFile, reading: Rows | TraceforgeError) -> None:
        """Add a file, now or together with those that follow."""
        if isinstance(reading, TraceforgeError):
            self.failed.append((file.path, reading))
        elif not callable(reading) and not (isinstance(reading, Spooled) and reading.tables):
            self._waiting.append((file, reading))
            self._waiting_bytes += reading.size_bytes
            if not self._in_one and self._is_full():
                self.flush()
        else:
            self.flush()
            self._add_alone(file, reading)

    def _is_full(self) -> bool:
        return self._waiting_bytes >= _MOST_WAITING_BYTES or len(self._waiting) >= _MOST_WAITING

    def flush(self) -> None:
        """Add all that wait."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        try:
            self._add_together(waiting)
        except Exception as error:
            if not waiting:
                raise
            if len(waiting) == 1:
                self.failed.append((waiting[0][0].path, failure_of(waiting[0][0].path, error)))
                return
            for one in waiting:
                self._waiting = [one]
                self.flush()
        else:
            self.added += [file.path for file, _ in waiting]

    def _add_together(self, waiting: Sequence[tuple[InputFile, SourceRows]]) -> None:
        if not waiting:
            return
        with self._transaction():
            first = self._next_id()
            self._note([_Added(file, first + place, one.summary) for place, (file, one) in enumerate(waiting)])
            self._facts.add(first, [one for _, one in waiting])

    def _add_alone(self, file: InputFile, reading: Rows) -> None:
        try:
            with self._transaction():
                source_id = self._next_id()
                summary = reading(source_id) if callable(reading) else reading.summary
                self._note([_Added(file, source_id, summary)])
                self._facts.add(source_id, [] if callable(reading) else [reading])
        except Exception as error:  # noqa: BLE001 - a file fails alone, whatever its reader did
            self.failed.append((file.path, failure_of(file.path, error)))
        else:
            self.added.append(file.path)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction of the database, whose facts know how it ended."""
        try:
            with self._store.transaction():
                yield
        except BaseException:
            self._facts.settle(is_committed=False)
            raise
        self._facts.settle(is_committed=True)

    def _next_id(self) -> int:
        return int(self._store.value(_LAST)) + 1

    def _note(self, found: Sequence[_Added]) -> None:
        """Rows of meta.source and meta.issue of files whose own rows are there."""
        import polars as pl

        sizes = [_size(one.file) for one in found]
        for one, size in zip(found, sizes, strict=True):
            remove_cut_off(self._store, self._facts, self._former.pop(one.file.shown_path, ()), one.summary, size)
        rows = [self._source_row(one, size) for one, size in zip(found, sizes, strict=True)]
        self._store.append("meta.source", pl.DataFrame(rows, infer_schema_length=None))
        issues = [
            frame
            for one in found
            if not (frame := issue_rows(self._run_id, one.source_id, "ingest", one.summary.issues)).is_empty()
        ]
        if issues:
            self._store.append("meta.issue", pl.concat(issues, how="vertical_relaxed"))
        stated = [one.summary.world_size for one in found if one.summary.world_size is not None]
        if believed := [size for size in stated if size < 2**31]:
            self._store.execute(_WORLD_SIZE, [max(believed), self._run_id])

    def _source_row(self, one: _Added, size: int) -> dict[str, object]:
        identity = identify(Path(one.file.shown_path), one.summary, self._rank_pattern)
        return {
            "source_id": one.source_id,
            "run_id": self._run_id,
            "kind": one.summary.kind,
            "path": one.file.shown_path,
            "rank": identity.rank,
            "rank_origin": identity.rank_origin,
            "host": identity.host,
            "status": "used" if one.summary.stored_count else "empty",
            "event_count": one.summary.event_count,
            "stored_count": one.summary.stored_count,
            "size_bytes": size,
            "content_hash": one.file.content_hash,
        }


def _size(file: InputFile) -> int:
    return size_bytes(file.path) if file.size_bytes is None else file.size_bytes
