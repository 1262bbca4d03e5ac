"""Files into facts. In: paths, sources, perhaps an executor. Out: meta.run, meta.source, meta.issue and raw.*.

Files are added whole, in transactions: an interrupted ingest leaves whole files or nothing, and running it again
finishes the rest. A file whose bytes are known already is not read. Workers read files at once where there is an
executor; what they find is added in the order of paths, many small files in one transaction (`addition`). Without an
executor the rows of a large file go straight from the source into the database.
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from traceforge.archives import HEAD_BYTES
from traceforge.errors import InputUnusableError, NotATraceError, TraceforgeError
from traceforge.files import content_hash, read_around, read_head, size_bytes
from traceforge.records import Batch, ReadOptions, Source, SourceSummary
from traceforge.store.addition import Addition, InputFile, Reading
from traceforge.store.database import Store
from traceforge.store.failures import failure_of
from traceforge.store.issues import Unused, note_unused
from traceforge.store.meter import Meter, OnProgress, watched
from traceforge.store.spool import Task, read_by_workers, spool_file, spool_folder
from traceforge.units import plural

_Found = Generator[tuple[Path, Reading], None, None]

# On disk; the rows of one that is smaller mostly fit in memory.
_SMALL_BYTES = 4 * 1024 * 1024

_KNOWN = """
SELECT s.content_hash FROM meta.source AS s JOIN meta.run AS r USING (run_id)
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
    known = set(store.query(_KNOWN, [run_name])["content_hash"])
    hashes, failed = _hashes(files)
    unchanged = tuple(path for path in hashes if hashes[path] in known)
    kinds = {path: kind for path in hashes if hashes[path] not in known and (kind := kind_of(path, sources))}
    unrecognised = tuple(path for path in hashes if path not in kinds and path not in unchanged)
    if not kinds and not unchanged:
        raise failed[0][1] if failed else _nothing_recognised(unrecognised)
    run_id = _run_id(store, run_name)
    with spool_folder(store.scratch) as spool, watched(spool, on_progress):
        tasks = _tasks(kinds, sources, spool, options, is_metered=on_progress is not None)
        found = read_by_workers(tasks, executor, on_file) if executor else _read_here(store, tasks, on_file)
        addition = Addition(store, run_id, rank_pattern)
        with closing(found):
            for path, reading in found:
                addition.add(InputFile(path, hashes[path], shown(path)), reading)
            addition.flush()
    read = addition.added
    failed += addition.failed
    note_unused(store, run_id, shown, Unused(tuple(files), unrecognised, tuple(failed), tuple(skipped)))
    if not read and not unchanged:
        raise failed[0][1]
    return IngestResult(run_id, tuple(read), unchanged, unrecognised, tuple(failed))


def _hashes(files: Iterable[Path]) -> tuple[dict[Path, str], list[tuple[Path, TraceforgeError]]]:
    """Content hash of each file, and the files whose bytes cannot be had."""
    hashes: dict[Path, str] = {}
    failed: list[tuple[Path, TraceforgeError]] = []
    for path in files:
        try:
            hashes[path] = content_hash(path)
        except Exception as error:  # noqa: BLE001 - a file fails alone
            failed.append((path, failure_of(path, error)))
    return hashes, failed


def kind_of(path: Path, sources: Mapping[str, Source]) -> str | None:
    """Name of the first source that recognises the content of a file, or None."""
    try:
        head = read_head(path)
        found = next((name for name, source in sources.items() if source.recognises(head)), None)
        if found is not None or len(head) < HEAD_BYTES or b"\0" in head:
            return found
        # A long text of other things may stand before the first line that a source knows.
        marked = {name: source for name, source in sources.items() if getattr(source, "marks", ())}
        window = read_around(path, [mark for source in marked.values() for mark in getattr(source, "marks", ())])
        return next((name for name, source in marked.items() if source.recognises(window)), None)
    except (InputUnusableError, OSError):
        return None


def _tasks(
    kinds: Mapping[Path, str], sources: Mapping[str, Source], spool: Path, options: ReadOptions, *, is_metered: bool
) -> list[Task]:
    tasks = []
    for number, path in enumerate(sorted(kinds)):
        folder = spool / str(number)
        own = replace(options, report_progress=Meter(folder)) if is_metered else options
        tasks.append(Task(path, sources[kinds[path]], folder, own))
    return tasks


def _read_here(store: Store, tasks: Sequence[Task], on_file: Callable[[Path], None]) -> _Found:
    """Each file, read now where it is small, else to be read while it is added."""
    for task in tasks:
        yield task.path, _small_file(task) if size_bytes(task.path) <= _SMALL_BYTES else _large_file(store, task)
        on_file(task.path)


def _small_file(task: Task) -> Reading:
    try:
        return spool_file(task)
    except Exception as error:  # noqa: BLE001 - a file fails alone, whatever its reader did
        return failure_of(task.path, error)


def _large_file(store: Store, task: Task) -> Reading:
    def read(source_id: int) -> SourceSummary:
        def append(batch: Batch) -> None:
            store.append(batch.table, batch.rows, source_id=source_id)
            store.release_memory()

        return task.source.read(task.path, append, task.options)

    return read


def _run_id(store: Store, run_name: str) -> int:
    rows = store.query("SELECT run_id FROM meta.run WHERE run_name = ?", [run_name])
    if not rows.is_empty():
        return int(rows.item())
    run_id = int(store.query("SELECT COALESCE(MAX(run_id), -1) + 1 FROM meta.run").item())
    store.execute("INSERT INTO meta.run (run_id, run_name) VALUES (?, ?)", [run_id, run_name])
    return run_id


def _nothing_recognised(paths: Sequence[Path]) -> NotATraceError:
    shown = ", ".join(path.name for path in paths[:3]) + (" …" if len(paths) > 3 else "")
    return NotATraceError(
        f"no trace of a known kind among {plural(len(paths), 'file')}" if paths else "there are no files",
        where=shown or None,
        hint="give the files that torch.profiler wrote (…pt.trace.json or .json.gz), or the folder that holds them",
    )
