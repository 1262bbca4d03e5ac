"""Files into facts. In: paths, sources, an executor. Out: meta.run, meta.source, meta.issue and raw.*.

Each file is read by a worker on its own into Parquet in a spool folder, then added in one transaction: an
interrupted ingest leaves whole files or nothing, and running it again finishes the rest. A file whose bytes are
known already is not read. Workers share no state, so the executor may be any that sees the same file system.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed, wait
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from traceforge.errors import InputUnusableError, NotATraceError, TraceforgeError
from traceforge.files import DAMAGE, content_hash, read_head, size_bytes
from traceforge.records import Batch, Issue, ReadOptions, Source, SourceSummary
from traceforge.store.database import Store
from traceforge.store.meter import Meter, OnProgress, watched
from traceforge.store.naming import Identity, identify

_KNOWN = """
SELECT s.content_hash FROM meta.source AS s JOIN meta.run AS r USING (run_id) WHERE r.run_name = ?
"""

_FORGET = """
DELETE FROM meta.issue
WHERE run_id = ? AND source_id IS NULL AND stage = 'ingest' AND LIST_CONTAINS(?, first_at)
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


@dataclass(frozen=True, slots=True)
class _Spooled:
    """A file read by a worker: its summary, and the tables it wrote below `folder`."""

    path: Path
    content_hash: str
    summary: SourceSummary
    folder: Path
    tables: tuple[str, ...]


def ingest_files(
    store: Store,
    files: Sequence[Path],
    sources: Mapping[str, Source],
    *,
    run_name: str,
    executor: Executor,
    options: ReadOptions,
    on_file: Callable[[Path], None] = lambda _path: None,
    on_progress: OnProgress | None = None,
    shown: Callable[[Path], str] = str,
    rank_pattern: re.Pattern[str] | None = None,
) -> IngestResult:
    """Add files to a run of the database, making the run if it is new.

    Args:
        on_file: called with each file that has been read.
        on_progress: called now and then with the bytes consumed so far and the memory of all readers.
        shown: how a file is named in the database.
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
    read: list[Path] = []
    with tempfile.TemporaryDirectory(prefix="traceforge-spool-") as spool, watched(Path(spool), on_progress):
        jobs = {
            executor.submit(
                spool_file, path, hashes[path], sources[kinds[path]], Path(spool, str(number)), options
            ): path
            for number, path in enumerate(kinds)
        }
        try:
            for spooled in _in_path_order(jobs, failed, on_file):
                name = shown(spooled.path)
                _add(store, run_id, spooled, name, identify(Path(name), spooled.summary, rank_pattern))
                read.append(spooled.path)
        finally:
            # After an interruption nobody wants the rest; what is being read ends before its folder goes.
            for job in jobs:
                job.cancel()
            wait(jobs)
    names = {path: shown(path) for path in files}
    _note_unused(store, run_id, names, unrecognised, failed)
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
        except TraceforgeError as error:
            failed.append((path, error))
        except DAMAGE as error:
            failed.append((path, InputUnusableError(f"cannot be read: {error}", where=str(path))))
    return hashes, failed


def kind_of(path: Path, sources: Mapping[str, Source]) -> str | None:
    """Name of the first source that recognises the content of a file, or None."""
    try:
        head = read_head(path)
    except InputUnusableError:
        return None
    return next((name for name, source in sources.items() if source.recognises(head)), None)


def spool_file(path: Path, digest: str, source: Source, folder: Path, options: ReadOptions) -> _Spooled:
    """Read one file into Parquet below `folder`. Runs in a worker.

    Raises:
        InputUnusableError: nothing of the file can be used.
    """
    counts: Counter[str] = Counter()
    # Parents are not made: once an interrupted ingest has removed the spool folder, nothing shall bring it back.
    folder.mkdir(exist_ok=True)

    def write(batch: Batch) -> None:
        if batch.rows.is_empty():
            return
        target = folder / batch.table
        target.mkdir(exist_ok=True)
        batch.rows.write_parquet(target / f"{counts[batch.table]:06}.parquet", compression="lz4", statistics=False)
        counts[batch.table] += 1

    summary = source.read(path, write, replace(options, report_progress=Meter(folder)))
    return _Spooled(path, digest, summary, folder, tuple(sorted(counts)))


def _in_path_order(
    jobs: "Mapping[Future[_Spooled], Path]",
    failed: list[tuple[Path, TraceforgeError]],
    on_file: Callable[[Path], None],
) -> Iterable[_Spooled]:
    # Added in the order of paths, not of completion, so that the same files give the same identifiers.
    waiting = sorted(jobs.values())
    done: dict[Path, _Spooled | TraceforgeError] = {}
    for future in as_completed(jobs):
        path = jobs[future]
        try:
            done[path] = future.result()
        except TraceforgeError as error:
            done[path] = error
        on_file(path)
        while waiting and waiting[0] in done:
            next_path = waiting.pop(0)
            result = done.pop(next_path)
            if isinstance(result, _Spooled):
                yield result
            else:
                failed.append((next_path, result))


def _run_id(store: Store, run_name: str) -> int:
    rows = store.query("SELECT run_id FROM meta.run WHERE run_name = ?", [run_name])
    if not rows.is_empty():
        return int(rows.item())
    run_id = int(store.query("SELECT COALESCE(MAX(run_id), -1) + 1 FROM meta.run").item())
    store.execute("INSERT INTO meta.run (run_id, run_name) VALUES (?, ?)", [run_id, run_name])
    return run_id


def _add(store: Store, run_id: int, spooled: _Spooled, shown_path: str, identity: Identity) -> None:
    summary = spooled.summary
    with store.transaction():
        source_id = int(store.query("SELECT COALESCE(MAX(source_id), -1) + 1 FROM meta.source").item())
        store.execute(
            "INSERT INTO meta.source VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                source_id,
                run_id,
                summary.kind,
                shown_path,
                identity.rank,
                identity.rank_origin,
                identity.host,
                "used" if summary.stored_count else "empty",
                summary.event_count,
                summary.stored_count,
                size_bytes(spooled.path),
                spooled.content_hash,
            ],
        )
        for table in spooled.tables:
            store.append_parquet(table, str(spooled.folder / table / "*.parquet"), source_id=source_id)
        store.append("meta.issue", issue_rows(run_id, source_id, "ingest", summary.issues))
        if summary.world_size is not None:
            store.execute(
                "UPDATE meta.run SET world_size = GREATEST(COALESCE(world_size, 0), ?) WHERE run_id = ?",
                [summary.world_size, run_id],
            )


def issue_rows(run_id: int, source_id: int | None, stage: str, issues: Iterable[Issue]) -> pl.DataFrame:
    """Rows of `meta.issue`."""
    return pl.DataFrame(
        [
            {
                "run_id": run_id,
                "source_id": source_id,
                "stage": stage,
                "code": issue.code,
                "severity": issue.severity,
                "count": issue.count,
                "lost_events": issue.lost_events,
                "first_at": issue.first_at,
                "detail": issue.detail,
            }
            for issue in issues
        ],
        infer_schema_length=None,
    )


def _note_unused(
    store: Store,
    run_id: int,
    names: Mapping[Path, str],
    unrecognised: Sequence[Path],
    failed: Sequence[tuple[Path, TraceforgeError]],
) -> None:
    issues = [Issue("file_failed", "error", 1, names[path], error.what) for path, error in failed]
    if unrecognised:
        detail = "files that are no trace of a known kind were left out"
        issues.append(Issue("file_not_recognised", "info", len(unrecognised), names[unrecognised[0]], detail))
    # What an earlier ingest noted of these files is judged anew; what it noted of others stays.
    store.execute(_FORGET, [run_id, list(names.values())])
    store.append("meta.issue", issue_rows(run_id, None, "ingest", issues))


def _nothing_recognised(paths: Sequence[Path]) -> NotATraceError:
    shown = ", ".join(path.name for path in paths[:3]) + (" …" if len(paths) > 3 else "")
    return NotATraceError(
        f"no trace of a known kind among {len(paths)} file(s)" if paths else "there are no files",
        where=shown or None,
        hint="give the files that torch.profiler wrote (…pt.trace.json or .json.gz), or the folder that holds them",
    )
