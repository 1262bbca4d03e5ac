"""One part of a job array. In: all files, which part. Out: its rows as Parquet files in a folder, and a manifest.

Idea: file number p of the sorted listing belongs to part p modulo n. Each machine lists all files, reads its own, and
leaves the catalogue alone, so that parts need no scheduler and no lock; `array_merge` makes a database of them.
Not handled: files that the database holds already are read again, and recognised by their bytes when parts are merged.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from traceforge.records import ReadOptions, Source
from traceforge.store.array_manifest import (
    JobPart,
    Manifest,
    ReadFile,
    Settings,
    checksum_of,
    folder_of_parts,
    write_manifest,
)
from traceforge.store.folder import Folder
from traceforge.store.ingest import Plan, size_of, tasks_of
from traceforge.store.issues import Listing, listing_of
from traceforge.store.meter import OnProgress, watched
from traceforge.store.opening import prepare_folder
from traceforge.store.partition_writer import PartitionedFile
from traceforge.store.spool import Examined, Task, read_by_workers, read_task


@dataclass(frozen=True, slots=True)
class Listed:
    """All files of all parts.

    Attributes:
        files: in any order.
        skipped: what lies among them and is none, with what it is.
        shown: how a file is named in the database.
    """

    files: Sequence[Path]
    skipped: Sequence[tuple[Path, str]]
    shown: Callable[[Path], str]


def read_part(
    folder: Folder,
    listed: Listed,
    part: JobPart,
    settings: Settings,
    sources: Mapping[str, Source],
    options: ReadOptions,
    executor: Executor | None,
    on_progress: OnProgress | None = None,
) -> Manifest:
    """Read the files of one part.

    Args:
        executor: reads files at once; None reads one after the other, here.

    Raises:
        InputUnusableError: the folder is none where parts can lie.
    """
    prepare_folder(folder)
    parts = folder_of_parts(folder)
    parts.mkdir(exist_ok=True)
    attempt = parts / f"{part.name}.{secrets.token_hex(8)}"
    attempt.mkdir()
    files = sorted(listed.files)
    places = dict(zip(files, range(len(files)), strict=True))
    with watched(attempt, on_progress):
        plan = Plan(sources, attempt, options, in_partitions=True, is_metered=on_progress is not None)
        tasks = tasks_of(part.of(files), plan, known={})
        read = [_read_file(task, found, places, listed.shown) for task, found in _found(tasks, executor)]
    listing_hash, listing = _listing(files, listed)
    manifest = Manifest(part, attempt.name, settings, listing_hash, listing, tuple(read))
    write_manifest(folder, manifest)
    return manifest


def _found(tasks: Sequence[Task], executor: Executor | None) -> list[tuple[Task, Examined]]:
    if executor is None:
        return [(task, read_task(task)) for task in tasks]
    with closing(read_by_workers(tasks, executor, lambda _path: None)) as found:
        return list(found)


def _read_file(task: Task, found: Examined, places: Mapping[Path, int], shown: Callable[[Path], str]) -> ReadFile:
    rows = found.rows
    checksums = (
        {one.table: checksum_of(rows, one) for one in rows.partitions} if isinstance(rows, PartitionedFile) else {}
    )
    names = str(task.path), shown(task.path)
    return ReadFile(places[task.path], *names, task.options.part, task.size_bytes, found, checksums)


def _listing(files: Sequence[Path], listed: Listed) -> tuple[str, Listing]:
    """A hash of names and sizes of all files; and what else was found, without the names of the files."""
    names = [(listed.shown(path), size_of(path)) for path in files]
    whole = listing_of(files, listed.skipped, listed.shown)
    others = Listing(list(whole.names[len(files) :]), whole.issues)
    return hashlib.sha256(json.dumps(names).encode()).hexdigest(), others
