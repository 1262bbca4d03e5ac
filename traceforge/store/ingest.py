"""Files into facts. In: paths, sources, perhaps an executor. Out: meta.run, meta.source, meta.issue and raw.*.

Files are added whole, in transactions: an interrupted ingest leaves whole files or nothing, and running it again
finishes the rest. A file whose bytes are known already is not read. Where there is an executor, workers hash, recognise
and read files at once; what they find is added in the order of paths, many small files in one transaction (`addition`).
Without an executor the rows of a large file go straight from the source into a database that is a file.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from traceforge.errors import InputUnusableError, NotATraceError, TraceforgeError
from traceforge.files import size_bytes
from traceforge.records import Batch, ReadOptions, Source, SourceSummary
from traceforge.store.addition import Addition, InputFile
from traceforge.store.database import Store
from traceforge.store.issues import Listing, Unused, listing_of, note_unused
from traceforge.store.meter import Meter, OnProgress, watched
from traceforge.store.parts import parts_of
from traceforge.store.spool import Examined, Task, examine, read_by_workers, read_task, read_within_limits, spool_folder
from traceforge.store.unread_formats import unread_hint
from traceforge.units import plural

# On disk; the rows of one that is smaller mostly fit in memory.
_SMALL_BYTES = 4 * 1024 * 1024

_KNOWN = """
SELECT s.size_bytes, s.content_hash FROM meta.source AS s JOIN meta.run AS r USING (run_id)
WHERE r.run_name = $1 OR STARTS_WITH(r.run_name, $1 || ' [')
"""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest did.

    Attributes:
        run_id: the run the files belong to.
        read: files read now.
        unchanged: files known already.
        unrecognised: files that are no trace of a known kind.
        failed: files that are traces but could not be used, with the error.
    """

    run_id: int
    read: tuple[Path, ...]
    unchanged: tuple[Path, ...]
    unrecognised: tuple[Path, ...]
    failed: tuple[tuple[Path, TraceforgeError], ...]


def ingest_files(
    store: Store,
    files: Sequence[Path],
    sources: Mapping[str, Source],
    *,
    run_name: str,
    executor: Executor | None,
    options: ReadOptions,
    on_file: Callable[[Path], None] = lambda _path: None,
    on_progress: OnProgress | None = None,
    shown: Callable[[Path], str] = str,
    skipped: Sequence[tuple[Path, str]] = (),
    rank_pattern: re.Pattern[str] | None = None,
) -> IngestResult:
    """Add files to a run of the database, making the run if it is new.

    Args:
        executor: reads files at once; None reads one after the other, here.
        on_file: called with each file that has been read.
        on_progress: called now and then with the bytes consumed so far and the memory of all readers.
        shown: how a file is named in the database.
        skipped: what lies among the files and is none, with what it is; only noted.
        rank_pattern: finds the rank in `shown` names where files do not state it (see `naming.rank_pattern`).

    Raises:
        NotATraceError: none of the files is a trace.
    """
    gathered = Gathered(store, run_name, rank_pattern, shown)
    with spool_folder(store.scratch) as spool, watched(spool, on_progress):
        plan = Plan(sources, spool, options, store.folder is not None, is_metered=on_progress is not None)
        tasks = tasks_of(files, plan, known_files(store, run_name))
        gathered.take_all(read_by_workers(tasks, executor, on_file) if executor else _read_here(store, tasks, on_file))
    return gathered.finish(listing_of(files, skipped, shown))


@dataclass(slots=True)
class Gathered:
    """What becomes of the files of one ingest; the run is made with the first of them that is a trace.

    Attributes:
        in_one: others read the files; all of them are added in one transaction.
    """

    store: Store
    run_name: str
    rank_pattern: re.Pattern[str] | None
    shown: Callable[[Path], str]
    in_one: bool = False
    addition: Addition | None = None
    unchanged: list[Path] = field(default_factory=list)
    unrecognised: list[Path] = field(default_factory=list)
    unreadable: list[tuple[Path, TraceforgeError]] = field(default_factory=list)

    def take_all(self, found: Generator[tuple[Task, Examined], None, None]) -> None:
        """Take files in the order of paths, and add them."""
        if self.store.folder is not None:
            self.store.folder.sweep(self.store.partitions())
        try:
            with closing(found):
                for task, examined in found:
                    self._take(task, examined)
                if self.addition is not None:
                    self.addition.flush()
        finally:
            self.store.publish_partitions(self.store.partitions())

    def _take(self, task: Task, found: Examined) -> None:
        path = task.path
        if found.is_known:
            self.unchanged.append(path)
        elif found.content_hash is None and found.error is not None:
            self.unreadable.append((path, found.error))
        elif (reading := found.error or found.rows) is not None:
            if self.addition is None:
                run_id = _run_id(self.store, self.run_name)
                self.addition = Addition(self.store, run_id, self.rank_pattern, in_one=self.in_one)
            shown = "/".join(filter(None, (self.shown(path), task.options.part)))
            size = task.size_bytes if self.in_one else None
            self.addition.add(InputFile(path, found.content_hash or "", shown, size), reading)
        else:
            self.unrecognised.append(path)

    def finish(self, listing: Listing) -> IngestResult:
        """Note what was left out.

        Raises:
            NotATraceError: none of the files is a trace.
            TraceforgeError: none of those that are could be read.
        """
        read = self.addition.added if self.addition else []
        failed = [*self.unreadable, *(self.addition.failed if self.addition else [])]
        if self.addition is None and not self.unchanged:
            raise failed[0][1] if failed else _nothing_recognised(self.unrecognised)
        run_id = _run_id(self.store, self.run_name)
        note_unused(self.store, run_id, self.shown, Unused(listing, self.unrecognised, failed))
        if not read and not self.unchanged:
            raise failed[0][1]
        # A file of several ranks is one file to its user.
        read_files, unchanged = tuple(dict.fromkeys(read)), tuple(dict.fromkeys(self.unchanged))
        return IngestResult(run_id, read_files, unchanged, tuple(self.unrecognised), tuple(failed))


def known_files(store: Store, run_name: str) -> Mapping[int, frozenset[str]]:
    """Content hashes of the files that a run holds, by their size on disk."""
    known: dict[int, set[str]] = defaultdict(set)
    for size, digest in store.query(_KNOWN, [run_name]).rows():
        known[size].add(digest)
    return {size: frozenset(digests) for size, digests in known.items()}


@dataclass(frozen=True, slots=True)
class Plan:
    """How files are to be read.

    Attributes:
        sources: all formats by name.
        spool: folder in which each task has one of its own.
        options: what to keep.
        in_partitions: write rows as partitions of a folder database.
        is_metered: count the bytes that were consumed.
    """

    sources: Mapping[str, Source]
    spool: Path
    options: ReadOptions
    in_partitions: bool
    is_metered: bool


def tasks_of(files: Sequence[Path], plan: Plan, known: Mapping[int, frozenset[str]]) -> list[Task]:
    """What there is to read, in the order of paths.

    Args:
        known: content hashes of files that need not be read again, by size.
    """
    tasks: list[Task] = []
    for path in sorted(files):
        size = size_of(path)
        former = known.get(size, frozenset())
        for part, identity in parts_of(path, plan.sources):
            folder = plan.spool / str(len(tasks))
            progress = Meter(folder) if plan.is_metered else plan.options.report_progress
            own = replace(plan.options, part=part, report_progress=progress)
            tasks.append(Task(path, plan.sources, folder, own, size, former, identity, plan.in_partitions))
    return tasks


def size_of(path: Path) -> int:
    """Size of a file on disk; 0 where it cannot be had."""
    try:
        return size_bytes(path)
    except (InputUnusableError, OSError):
        return 0  # whoever reads it will say why it cannot be


def _read_here(
    store: Store, tasks: Sequence[Task], on_file: Callable[[Path], None]
) -> Generator[tuple[Task, Examined], None, None]:
    """Each file, read now where it is small or goes to a folder, else to be read while it is added."""
    for task in tasks:
        if task.in_partitions or task.size_bytes <= _SMALL_BYTES:
            found = read_task(task)
        else:
            found = examine(task)
            if found.kind is not None:
                found = replace(found, rows=_large_file(store, task, task.sources[found.kind]))
        yield task, found
        if found.is_read:
            on_file(task.path)


def _large_file(store: Store, task: Task, source: Source) -> Callable[[int], SourceSummary]:
    def read(source_id: int) -> SourceSummary:
        def append(batch: Batch) -> None:
            store.append(batch.table, batch.rows, source_id=source_id)
            store.release_memory()

        return read_within_limits(task, source, append)

    return read


def _run_id(store: Store, run_name: str) -> int:
    rows = store.query("SELECT run_id FROM meta.run WHERE run_name = ?", [run_name])
    if not rows.is_empty():
        return int(rows.item())
    run_id = int(store.value("SELECT COALESCE(MAX(run_id), -1) + 1 FROM meta.run"))
    store.execute("INSERT INTO meta.run (run_id, run_name) VALUES (?, ?)", [run_id, run_name])
    return run_id


def _nothing_recognised(paths: Sequence[Path]) -> NotATraceError:
    shown = ", ".join(path.name for path in paths[:3]) + (" …" if len(paths) > 3 else "")
    return NotATraceError(
        f"no trace of a known kind among {plural(len(paths), 'file')}" if paths else "there are no files",
        where=shown or None,
        hint=unread_hint(paths)
        or "give the files that torch.profiler wrote (…pt.trace.json or .json.gz), or the folder that holds them",
    )
