"""Files read by workers. In: tasks, an executor. Out: their rows, in the order of paths: few as they are, many as
Parquet files below a spool folder; for a folder database all of them as partitions.

Idea: a worker does all that concerns one file: it hashes, recognises and reads it, unless its bytes are known. Workers
share no state, so the executor may be any that sees the same file system. The folder lies beside the
database, whose lock only one process can hold: so what an ingest finds there is of one that was killed, and goes if it
bears our mark (see `places`).
Workers that outlive a killed ingest stop at the next batch, since their own folder is gone.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from traceforge import files
from traceforge.archives import HEAD_BYTES
from traceforge.errors import InputUnusableError, TraceforgeError
from traceforge.records import Batch, ReadOptions, Source, SourceSummary
from traceforge.store.budget import within
from traceforge.store.failures import failure_of
from traceforge.store.folder import mark_of
from traceforge.store.partition_writer import PartitionedFile, PartitionWriter
from traceforge.store.places import own_folder, temporary_files_in
from traceforge.store.workers import ReaderPool, results_in_order

_SQLITE = b"SQLite format 3\0"
_PARQUET = b"PAR1"
_MOST_HELD_BYTES = 2 * 1024 * 1024
_MOST_AHEAD = 128
_MOST_BYTES_AHEAD = 4 * 1024**3  # of input
_ALWAYS_AHEAD = 16
_MOST_PARTITIONED_AHEAD = 4_096  # whose rows wait where they will stay


Identity = tuple[str, str | None]
"""Content hash and kind of a file."""


@dataclass(frozen=True, slots=True)
class Task:
    """A file to be read, and a folder of its own to do so.

    Attributes:
        path: of the file.
        sources: all formats by name.
        folder: need not exist.
        options: what to keep.
        size_bytes: of the file on disk.
        known: content hashes of files of this size that need not be read again.
        identity: content hash and kind, where they are known already.
        in_partitions: write rows as partitions of a folder database.

    Which part of the file is to be read stands in `options`; other parts are tasks of their own.
    """

    path: Path
    sources: Mapping[str, Source]
    folder: Path
    options: ReadOptions
    size_bytes: int
    known: frozenset[str] = frozenset()
    identity: Identity | None = None
    in_partitions: bool = False

    @property
    def key(self) -> tuple[Path, str | None]:
        """What tells a task from all others."""
        return self.path, self.options.part


@dataclass(frozen=True, slots=True)
class Spooled:
    """A file that was read.

    Attributes:
        summary: what it says about itself.
        batches: all its rows, where they are few.
        folder: of Parquet files with all its rows, where they are many.
        tables: their folders.
        size_bytes: of `batches` in memory.
    """

    summary: SourceSummary
    batches: tuple[Batch, ...]
    folder: Path
    tables: tuple[str, ...]
    size_bytes: int


SourceRows = Spooled | PartitionedFile
"""The rows of a file that was read."""
Rows = SourceRows | Callable[[int], SourceSummary]
"""The same; or the file is large, and is read while it is added under a number."""


@contextmanager
def spool_folder(scratch: Path) -> Iterator[Path]:
    """A folder for the spool of one ingest, below the scratch folder of the open database; removed in the end."""
    with own_folder(scratch) as folder:
        # A name never used before, so that workers of a killed ingest do not write into this one's folder.
        spool = Path(tempfile.mkdtemp(dir=folder))
        with temporary_files_in(spool):
            yield spool


@dataclass(frozen=True, slots=True)
class Examined:
    """A file whose bytes were looked at.

    Attributes:
        content_hash: of its bytes; None where they cannot be had.
        kind: name of the source that recognises it, or None.
        is_known: whether its bytes are known, so that it need not be read.
        rows: what was read of it; None where it was not.
        error: why it could not be read, or None.
    """

    content_hash: str | None
    kind: str | None = None
    is_known: bool = False
    rows: Rows | None = None
    error: TraceforgeError | None = None

    @property
    def is_read(self) -> bool:
        """Whether its source was asked."""
        return self.rows is not None or (self.error is not None and self.content_hash is not None)


def examine(task: Task) -> Examined:
    """Hash a file and recognise it; an error of doing so is its own."""
    try:
        content_hash, kind = task.identity or (files.content_hash(task.path), None)
        if content_hash in task.known:
            return Examined(content_hash, is_known=True)
        return Examined(content_hash, kind if task.identity else kind_of(task.path, task.sources))
    except Exception as error:  # noqa: BLE001 - a file fails alone
        return Examined(None, error=failure_of(task.path, error))


def read_task(task: Task) -> Examined:
    """Examine one file, and read it if that is of use. Runs in a worker."""
    found = examine(task)
    if found.kind is None or found.content_hash is None:
        return found
    try:
        with temporary_files_in(task.folder.parent):
            return replace(found, rows=read_rows(task, task.sources[found.kind], found.content_hash))
    except Exception as error:  # noqa: BLE001 - a file fails alone, whatever its reader did
        return replace(found, error=failure_of(task.path, error))


def read_rows(task: Task, source: Source, content_hash: str) -> SourceRows:
    """Read one file.

    Raises:
        InputUnusableError: nothing of the file can be used.
    """
    if task.in_partitions:
        writer = PartitionWriter(task.folder, mark_of(content_hash))
        return writer.finish(read_within_limits(task, source, writer.write))
    spool = _Spool(task.folder)
    summary = read_within_limits(task, source, spool.write)
    return Spooled(summary, tuple(spool.held), task.folder, tuple(sorted(spool.counts)), spool.held_bytes)


def read_within_limits(task: Task, source: Source, emit: Callable[[Batch], None]) -> SourceSummary:
    """Have a source read a file.

    Raises:
        InputUnusableError: nothing of the file can be used, or it costs too much.
    """
    with within(task.options.limits, task.path):
        return source.read(task.path, emit, task.options)


def kind_of(path: Path, sources: Mapping[str, Source]) -> str | None:
    """Name of the first source that recognises the content of a file, or None."""
    try:
        head = files.read_head(path)
        found = next((name for name, source in sources.items() if source.recognises(head)), None)
        if found is None and head.startswith(_SQLITE):
            from traceforge.reading.sqlite_file import table_names

            # SQLite writes the names of tables where there was room when they were made, which may be far behind.
            tables = table_names(path)
            found = next((name for name, source in sources.items() if source.recognises(tables)), None)
        if found is None and head.startswith(_PARQUET):
            from traceforge.reading.parquet_folder import column_names

            columns = column_names(path)
            found = next((name for name, source in sources.items() if source.recognises(columns)), None)
        if found is not None or len(head) < HEAD_BYTES or b"\0" in head:
            return found
        # A long text of other things may stand before the first line that a source knows.
        marked = {name: source for name, source in sources.items() if getattr(source, "marks", ())}
        marks = [mark for source in marked.values() for mark in getattr(source, "marks", ())]
        window = files.read_around(path, marks)
        return next((name for name, source in marked.items() if source.recognises(window)), None)
    except (InputUnusableError, OSError):
        return None


class _Spool:
    """Holds the rows of a file as long as they are few, then writes all of them below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.held: list[Batch] = []
        self.held_bytes = 0
        self.counts: Counter[str] = Counter()

    def write(self, batch: Batch) -> None:
        if batch.rows.is_empty():
            return
        if not self.counts:
            self.held.append(batch)
            self.held_bytes += int(batch.rows.estimated_size())
            if self.held_bytes <= _MOST_HELD_BYTES:
                return
            held, self.held, self.held_bytes = self.held, [], 0
        else:
            held = [batch]
        # Parents are not made: once an interrupted ingest has removed the spool folder, nothing shall bring it back.
        self._folder.mkdir(exist_ok=True)
        for one in held:
            target = self._folder / one.table
            target.mkdir(exist_ok=True)
            one.rows.write_parquet(target / f"{self.counts[one.table]:06}.parquet", compression="lz4", statistics=False)
            self.counts[one.table] += 1


def read_by_workers(
    tasks: Sequence[Task], executor: Executor, on_file: Callable[[Path], None]
) -> Generator[tuple[Task, Examined], None, None]:
    """What became of each file, in the order of the tasks, whichever finished first.

    Only so many files are read ahead of the one that is handed over: what workers found of them waits in memory or on
    disk.
    """

    def on_done(task: Task, found: Examined) -> None:
        if found.is_read:
            on_file(task.path)

    to_workers = [_to_worker(task) for task in tasks]
    found = results_in_order(executor, read_task, to_workers, _has_room, partial(_instead, executor), on_done)
    with closing(found):
        for task, (_, result) in zip(tasks, found, strict=True):
            yield task, result
            if isinstance(result.rows, Spooled):
                _remove_tables(result.rows)


def _has_room(ahead: Sequence[Task], task: Task) -> bool:
    """Whether one more file may be read before the first of those that are ahead is handed over."""
    if task.in_partitions:
        return len(ahead) < _MOST_PARTITIONED_AHEAD
    size = sum(one.size_bytes for one in ahead) + task.size_bytes
    return len(ahead) < _MOST_AHEAD and (size <= _MOST_BYTES_AHEAD or len(ahead) < _ALWAYS_AHEAD)


def _to_worker(task: Task) -> Task:
    """A task for a process of its own."""
    limits = replace(task.options.limits, may_end_process=True)
    return replace(task, options=replace(task.options, limits=limits))


def _instead(executor: Executor, task: Task, error: Exception) -> Examined:
    """What becomes of a file whose task failed."""
    if not isinstance(error, BrokenExecutor) or not isinstance(executor, ReaderPool):
        return Examined("", error=failure_of(task.path, error))  # also what a worker cannot send
    # A process that crashes takes all files with it that are being read: each is read once more, by itself.
    shutil.rmtree(task.folder, ignore_errors=True)
    try:
        return executor.run_alone(read_task, task)
    except BrokenExecutor:
        return crashed_reader(task)


def crashed_reader(task: Task) -> Examined:
    """What becomes of a file whose reader crashed again and again."""
    what = "the process that read it crashed, or was killed"
    hint = "the other files are not affected; perhaps there is too little memory"
    return Examined("", error=InputUnusableError(what, where=str(task.path), hint=hint))


def _remove_tables(spooled: Spooled) -> None:
    """Make room once a file is added; what its reader counted of progress stays."""
    for table in spooled.tables:
        shutil.rmtree(spooled.folder / table, ignore_errors=True)
