"""Files read by workers. In: tasks, an executor. Out: their rows, in the order of paths: few as they are, many as
Parquet files below a spool folder.

Idea: workers share no state, so the executor may be any that sees the same file system. The folder lies beside the
database, whose lock only one process can hold: so what an ingest finds there is of one that was killed, and goes if it
bears our mark (see `places`).
Workers that outlive a killed ingest stop at the next batch, since their own folder is gone.
"""

import shutil
import tempfile
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from traceforge.errors import TraceforgeError
from traceforge.records import Batch, ReadOptions, Source, SourceSummary
from traceforge.store.failures import failure_of
from traceforge.store.places import own_folder

_PAUSE_S = 0.5
_MOST_HELD_BYTES = 2 * 1024 * 1024
_MOST_AHEAD = 128


@dataclass(frozen=True, slots=True)
class Task:
    """A file to be read, and a folder of its own to do so."""

    path: Path
    source: Source
    folder: Path
    options: ReadOptions


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


@contextmanager
def spool_folder(scratch: Path) -> Iterator[Path]:
    """A folder for the spool of one ingest, below the scratch folder of the open database; removed in the end."""
    with own_folder(scratch) as folder:
        # A name never used before, so that workers of a killed ingest do not write into this one's folder.
        yield Path(tempfile.mkdtemp(dir=folder))


def spool_file(task: Task) -> Spooled:
    """Read one file. Runs in a worker.

    Raises:
        InputUnusableError: nothing of the file can be used.
    """
    spool = _Spool(task.folder)
    summary = task.source.read(task.path, spool.write, task.options)
    return Spooled(summary, tuple(spool.held), task.folder, tuple(sorted(spool.counts)), spool.held_bytes)


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
) -> Generator[tuple[Path, Spooled | TraceforgeError], None, None]:
    """What became of each file, in the order of the tasks, whichever finished first.

    Only so many files are read ahead of the one that is handed over: what workers found of them waits in memory or on
    disk.
    """
    todo, ahead = deque(tasks), deque[Path]()
    jobs: dict[Future[Spooled], Path] = {}
    done: dict[Path, Spooled | TraceforgeError] = {}
    try:
        while todo or jobs:
            while todo and len(ahead) < _MOST_AHEAD:
                task = todo.popleft()
                jobs[executor.submit(spool_file, task)] = task.path
                ahead.append(task.path)
            for future in _some_completed(jobs):
                path = jobs.pop(future)
                try:
                    done[path] = future.result()
                except Exception as error:  # noqa: BLE001 - a file fails alone, whatever its reader did
                    done[path] = failure_of(path, error)
                on_file(path)
            while ahead and ahead[0] in done:
                path = ahead.popleft()
                result = done.pop(path)
                yield path, result
                if isinstance(result, Spooled):
                    _remove_tables(result)
    finally:
        # After an interruption nobody wants the rest; what is being read ends before its folder goes.
        for job in jobs:
            job.cancel()
        left = set(jobs)
        while left:
            left -= _some_completed(left)


def _some_completed(futures: Iterable[Future[Spooled]]) -> set[Future[Spooled]]:
    """Those that have ended. Waits in short steps: a signal that comes while processes start wakes no sleeper."""
    return wait(futures, timeout=_PAUSE_S, return_when=FIRST_COMPLETED).done


def _remove_tables(spooled: Spooled) -> None:
    """Make room once a file is added; what its reader counted of progress stays."""
    for table in spooled.tables:
        shutil.rmtree(spooled.folder / table, ignore_errors=True)
