"""One job on many machines. In: traces, and which part of them. Out: a folder that parts fill, and its database.

A job array calls `ingest_part` on each machine, then one machine calls `merge`. Not handled: the stages, which
are built on that one machine.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from traceforge import api
from traceforge.align.runs import split_runs
from traceforge.align.stated_racks import StatedRacks
from traceforge.files import find_files, find_special, shown_names
from traceforge.records import ReadLimits, ReadOptions
from traceforge.replay.assumptions import assume
from traceforge.replay.reference_rule import ReferenceRule
from traceforge.store.array_manifest import JobPart, Manifest, Settings
from traceforge.store.array_merge import merge_parts, remains_of_parts, remove_parts, whole_parts
from traceforge.store.array_part import Listed, read_part
from traceforge.store.database import Store
from traceforge.store.folder import Folder
from traceforge.store.ingest import IngestResult
from traceforge.store.meter import OnProgress
from traceforge.store.naming import rank_pattern
from traceforge.store.stage import OnTable
from traceforge.store.workers import processes, readers, worker_count


def ingest_part(
    paths: Sequence[Path],
    database: Path,
    part: JobPart,
    *,
    run: str | None = None,
    jobs: int | None = None,
    keep_all_args: bool = False,
    limits: ReadLimits | None = None,
    on_progress: OnProgress | None = None,
    rank_regex: str | None = None,
) -> Manifest:
    """Read one part of the files into a folder database, which other machines may fill at the same time; see `merge`.

    Args:
        paths: files or folders, the same for all parts.
        database: a folder; its catalogue is left alone.
        run, jobs, keep_all_args, limits, on_progress, rank_regex: as of `ingest`.

    Raises:
        InputUnusableError: a path does not exist, or the folder is none where parts can lie.
        UsageError: `rank_regex` is no pattern with a group.
    """

    folder = Folder(database.absolute())
    # Rows of other parts are no traces, wherever the folder lies.
    files = [path for path in find_files(paths) if not path.resolve().is_relative_to(folder.path.resolve())]
    if rank_regex:
        rank_pattern(rank_regex)
    settings = Settings(api.reading_version(), api.run_name(run, paths), rank_regex, keep_all_args)
    listed = Listed(files, find_special(paths), shown_names(paths))
    options = ReadOptions(keep_all_args=keep_all_args, limits=limits or ReadLimits())
    with readers(None, jobs, part.of(sorted(files))) as workers:
        return read_part(folder, listed, part, settings, api.sources(), options, workers, on_progress)


def merge(
    database: Path,
    *,
    jobs: int | None = None,
    reference: ReferenceRule | None = None,
    rates: Mapping[str, float] | None = None,
    racks: StatedRacks | None = None,
    on_table: OnTable | None = None,
) -> IngestResult:
    """Make a database of all parts that lie in a folder, and build every stage.

    Args:
        jobs, reference, rates, racks, on_table: as of `ingest`.

    Raises:
        InputUnusableError: parts are missing, are damaged or do not belong together.
    """

    folder = Folder(database.absolute())
    manifests = whole_parts(folder, api.reading_version())
    sizes = [one.size_bytes for manifest in manifests for one in manifest.files]
    with Store(f"{folder.path}{os.sep}") as store, processes(worker_count(jobs, sizes)) as workers:
        result = merge_parts(store, manifests)
        split_runs(store, result.run_id)
        assume(store, reference, rates, racks)
        api.analyze(store, on_table, workers)
    remove_parts(folder)
    return result


def remains(database: Path) -> list[Path]:
    """What is still on the disk of parts that were merged into a folder database."""
    return remains_of_parts(Folder(database))
