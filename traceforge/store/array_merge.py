"""Parts of a job array, merged. In: their manifests and rows in a folder. Out: the tables that one process would make.

Idea: the files of all parts, in the order of the listing, are added as if they had just been read here, all in one
transaction: source numbers, issues and rows are those of a single ingest. Their rows are linked, not moved, and the
parts go last, so that a merge that was killed can be run again.
"""

import secrets
import shutil
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from traceforge.errors import InputUnusableError
from traceforge.files import FOLDER_OF_PARTS
from traceforge.records import ReadOptions
from traceforge.store.array_manifest import (
    JobPart,
    Manifest,
    ReadFile,
    Settings,
    checksum_of,
    files_of,
    folder_of_parts,
    read_manifests,
)
from traceforge.store.database import Store
from traceforge.store.folder import Folder, Partition
from traceforge.store.ingest import Gathered, IngestResult, known_files
from traceforge.store.issues import Listing
from traceforge.store.naming import rank_pattern
from traceforge.store.partition_writer import PartitionedFile
from traceforge.store.places import link_or_copy
from traceforge.store.spool import Examined, Task, spool_folder

_MOST_NAMES = 10


def whole_parts(folder: Folder, version: str) -> list[Manifest]:
    """All parts of the array, ready to be merged.

    Args:
        version: of the code that reads, which all parts must have.

    Raises:
        InputUnusableError: some are missing, or do not belong together.
    """
    where = str(folder.path)
    manifests = read_manifests(folder)
    if not manifests:
        hint = "`traceforge ingest TRACES --db FOLDER/ --part 1/8` writes one; parts that were merged are gone"
        raise InputUnusableError("no parts lie in this folder", where=where, hint=hint)
    counts = sorted({one.part.count for one in manifests})
    if len(counts) > 1:
        what = f"parts of different arrays are mixed: of {_listed(counts)}"
        hint = f"remove {FOLDER_OF_PARTS}/I-of-N.json of the array that you do not want"
        raise InputUnusableError(what, where=where, hint=hint)
    there = {one.part.number for one in manifests}
    if missing := [JobPart(number, counts[0]) for number in range(1, counts[0] + 1) if number not in there]:
        hint = f"run these with the same paths: traceforge ingest … --part {missing[0]}"
        raise InputUnusableError(f"{_parts(missing)} missing", where=where, hint=hint)
    for version_there in sorted({one.settings.version for one in manifests} - {version}):
        other = [one.part for one in manifests if one.settings.version == version_there]
        what = f"{_parts(other)} read by traceforge {version_there}, and this is {version}"
        raise InputUnusableError(
            what, where=where, hint="run these parts again with this version, or merge with theirs"
        )
    _refuse_other(where, {one.part: one.listing_hash for one in manifests}, "made from another listing of files")
    _refuse_other(where, {one.part: one.settings for one in manifests}, "read with other options")
    return manifests


def merge_parts(store: Store, manifests: Sequence[Manifest]) -> IngestResult:
    """Add the files of all parts to a folder database.

    Raises:
        InputUnusableError: nothing of them is a usable trace, or rows are missing or not whole.
    """
    settings, listing = manifests[0].settings, manifests[0].listing
    pattern = rank_pattern(settings.rank_regex) if settings.rank_regex else None
    files = sorted((one for manifest in manifests for one in manifest.files), key=lambda one: one.place)
    shown = {Path(one.path): one.shown_path for one in files}
    gathered = Gathered(store, settings.run_name, pattern, shown.__getitem__, in_one=True)
    with spool_folder(store.scratch) as spool:
        gathered.take_all(_found(files, spool, known_files(store, settings.run_name)))
    return gathered.finish(Listing([*shown.values(), *listing.names], listing.issues))


def remove_parts(folder: Folder) -> None:
    """Remove all parts: at once from where they count, then from the disk."""
    parts = folder_of_parts(folder)
    gone = folder.catalogue.with_name(f"{folder.catalogue.name}.merged-{secrets.token_hex(8)}")
    parts.rename(gone)
    for former in remains_of_parts(folder):
        shutil.rmtree(former, ignore_errors=True)


def remains_of_parts(folder: Folder) -> list[Path]:
    """Parts that were merged and are still on the disk, because they are write-protected, say."""
    return sorted(folder.path.glob(f"{folder.catalogue.name}.merged-*"))


def _found(
    files: Iterable[ReadFile], spool: Path, known: Mapping[int, frozenset[str]]
) -> Generator[tuple[Task, Examined], None, None]:
    """Each file as if it had just been read below a spool folder."""
    for number, one in enumerate(files):
        found = one.found
        task = Task(Path(one.path), {}, spool / str(number), ReadOptions(part=one.part), one.size_bytes)
        if found.content_hash in known.get(one.size_bytes, ()):
            found = Examined(found.content_hash, is_known=True)
        elif isinstance(found.rows, PartitionedFile):
            found = replace(found, rows=_linked(found.rows, one.checksums, task.folder))
        yield task, found


def _linked(rows: PartitionedFile, checksums: Mapping[str, int], folder: Path) -> PartitionedFile:
    for one in rows.partitions:
        (folder / one.table).mkdir(parents=True)
        paths = files_of(rows, one)
        parts = rows.folder.parent.parent
        is_plain = all(path.is_file() and path.resolve() == parts.resolve() / path.relative_to(parts) for path in paths)
        if not is_plain or sum(path.stat().st_size for path in paths) != one.size_bytes:
            raise _not_as_read(rows, one, "missing or not whole")
        if checksum_of(rows, one) != checksums.get(one.table):
            raise _not_as_read(rows, one, "damaged: they are not as they were written")
        for path in paths:
            link_or_copy(path, folder / one.table / path.name)
    return replace(rows, folder=folder)


def _not_as_read(rows: PartitionedFile, partition: Partition, what: str) -> InputUnusableError:
    part = rows.folder.parent.name.partition(".")[0].replace("-of-", "/")
    return InputUnusableError(
        f"rows of part {part} in {partition.table} are {what}",
        where=str(rows.folder / partition.table),
        hint=f"run this part again: traceforge ingest … --part {part}",
    )


def _refuse_other(where: str, found: Mapping[JobPart, Settings | str], what: str) -> None:
    """Refuse parts that differ from most of the others."""
    usual = Counter(found.values()).most_common(1)[0][0]
    if other := [part for part, value in found.items() if value != usual]:
        hint = "run these parts again, or all of them, on the same paths with the same options, once no file changes"
        raise InputUnusableError(f"{_parts(other)} {what} than the other parts", where=where, hint=hint)


def _parts(parts: Sequence[JobPart]) -> str:
    return f"part {parts[0]} is" if len(parts) == 1 else f"parts {_listed(parts)} are"


def _listed(items: Sequence[object]) -> str:
    more = f" and {len(items) - _MOST_NAMES} more" if len(items) > _MOST_NAMES else ""
    return ", ".join(map(str, items[:_MOST_NAMES])) + more
