"""What one part of a job array found. In: files that were read. Out: `parts/2-of-5.json` in a folder, and back.

    job42/parts/2-of-5.json                        what part 2 read, once it has read all of it
    job42/parts/2-of-5.6f1c9a2be0d34771/17/raw.event_kind/9f86d081884c7d65-000000.parquet    rows of its 18th file

Idea: each attempt at a part writes into a folder of its own, and its manifest, which names that folder, replaces that
of an earlier attempt in one step. A part that was killed left nothing that counts, and one that ran twice counts once.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from traceforge.errors import InputUnusableError, NoRanksTraceError, NotATraceError, TraceforgeError, UsageError
from traceforge.files import FOLDER_OF_PARTS
from traceforge.records import Issue, SourceSummary
from traceforge.store.folder import Folder, Partition, mark_of, part_name
from traceforge.store.issues import Listing
from traceforge.store.migrations import facts_form
from traceforge.store.partition_writer import PartitionedFile
from traceforge.store.spool import Examined

_PART = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_NAME = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)\.json")
_ATTEMPT = re.compile(r"[1-9][0-9]*-of-[1-9][0-9]*\.[0-9a-f]{16}")
_PIECE_BYTES = 1024 * 1024
_HASH = re.compile(r"[0-9a-f]{64}")
_ERRORS = {kind.__name__: kind for kind in (TraceforgeError, InputUnusableError, NotATraceError, NoRanksTraceError)}


@dataclass(frozen=True, slots=True, order=True)
class JobPart:
    """One of so many parts of the sorted listing; they count from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def name(self) -> str:
        """How its files are called."""
        return f"{self.number}-of-{self.count}"

    def of(self, files: Sequence[Path]) -> Sequence[Path]:
        """Its files of the sorted listing."""
        return files[self.number - 1 :: self.count]


@dataclass(frozen=True, slots=True)
class Settings:
    """What all parts must agree on.

    Attributes:
        version: of the code that reads.
        run_name: name of the run.
        rank_regex: as `--rank-regex`, or None.
        keep_all_args: as `--args all`.
    """

    version: str
    run_name: str
    rank_regex: str | None
    keep_all_args: bool


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file, or a part of one, and what became of it.

    Attributes:
        place: of the file in the listing.
        path: as it was found.
        shown_path: its name in the database.
        part: name of the part of the file; None where it is one rank's.
        size_bytes: of the file on disk.
        found: what was read; its rows are partitions.
        checksums: of the files of each table, which tell rows that were damaged before they are merged.
    """

    place: int
    path: str
    shown_path: str
    part: str | None
    size_bytes: int
    found: Examined
    checksums: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one part found.

    Attributes:
        part: which one.
        attempt: name of the folder with its rows.
        settings: how it read.
        listing_hash: of names and sizes of all files of all parts.
        listing: archives and what is no file, of all parts.
        files: those of this part.
    """

    part: JobPart
    attempt: str
    settings: Settings
    listing_hash: str
    listing: Listing
    files: tuple[ReadFile, ...]

    @property
    def read_count(self) -> int:
        """How many of them have rows."""
        return sum(one.found.rows is not None for one in self.files)


def part_of(text: str) -> JobPart:
    """The part that `--part` names.

    Raises:
        UsageError: it is not `i/n` with 1 <= i <= n.
    """
    found = _PART.fullmatch(text)
    part = JobPart(*map(int, found.groups())) if found else JobPart(0, 0)
    if not 1 <= part.number <= part.count:
        hint = "parts count from 1, as --part 1/8 to --part 8/8; in Slurm: --array=1-8"
        raise UsageError(f"--part takes i/n with i from 1 to n, not `{text}`", hint=hint)
    return part


def folder_of_parts(folder: Folder) -> Path:
    """Where manifests and rows of parts wait until they are merged."""
    return folder.path / FOLDER_OF_PARTS


def checksum_of(rows: PartitionedFile, partition: Partition) -> int:
    """Of the bytes of all files of a partition."""
    checksum = 0
    for path in files_of(rows, partition):
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                checksum = crc32(piece, checksum)
    return checksum


def files_of(rows: PartitionedFile, partition: Partition) -> list[Path]:
    """The files of a partition, in order, where they wait."""
    names = [part_name(partition.mark, number) for number in range(partition.part_count)]
    return [rows.folder / partition.table / name for name in names]


def write_manifest(folder: Folder, manifest: Manifest) -> None:
    """Have the part count, in one step."""
    parts = folder_of_parts(folder)
    document = asdict(replace(manifest, files=()))
    document["files"] = [{**_plain(one), "found": _examined_to_json(one.found)} for one in manifest.files]
    new = parts / manifest.attempt / "manifest.json"
    new.write_text(json.dumps(document), encoding="ascii")
    new.replace(parts / f"{manifest.part.name}.json")


def read_manifests(folder: Folder) -> list[Manifest]:
    """All parts that are whole, in order.

    Raises:
        InputUnusableError: a manifest is not as traceforge writes it.
    """
    parts = folder_of_parts(folder)
    if parts.is_symlink() or not parts.is_dir():
        return []
    return sorted((_read(path) for path in parts.iterdir() if _NAME.fullmatch(path.name)), key=lambda one: one.part)


def _read(path: Path) -> Manifest:
    try:
        manifest = _from_json(json.loads(path.read_text(encoding="ascii")), path.parent)
        if path.is_symlink() or path.name != f"{manifest.part.name}.json":
            raise ValueError(path.name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        part = path.stem.replace("-of-", "/")
        hint = f"run this part again: traceforge ingest … --part {part}"
        raise InputUnusableError("this manifest of a part is damaged", where=str(path), hint=hint) from error
    return manifest


def _from_json(document: Mapping[str, Any], parts: Path) -> Manifest:
    attempt = document["attempt"]
    if not _ATTEMPT.fullmatch(attempt):
        raise ValueError(attempt)
    listing = document["listing"]
    return Manifest(
        JobPart(**document["part"]),
        attempt,
        Settings(**document["settings"]),
        document["listing_hash"],
        Listing(listing["names"], [Issue(**issue) for issue in listing["issues"]]),
        tuple(_file_from_json(one, parts / attempt) for one in document["files"]),
    )


def _file_from_json(document: Mapping[str, Any], attempt: Path) -> ReadFile:
    found, checksums = _examined_from_json(document["found"], attempt), dict(document["checksums"])
    return ReadFile(**{**document, "found": found, "checksums": checksums})


def _plain(file: ReadFile) -> dict[str, object]:
    return {name: getattr(file, name) for name in ("place", "path", "shown_path", "part", "size_bytes", "checksums")}


def _examined_to_json(found: Examined) -> dict[str, object]:
    error, rows = found.error, found.rows
    return {
        "content_hash": found.content_hash,
        "kind": found.kind,
        "error": error and {"kind": type(error).__name__, "what": error.what, "where": error.where, "hint": error.hint},
        "rows": {**asdict(rows), "folder": rows.folder.name} if isinstance(rows, PartitionedFile) else None,
    }


def _examined_from_json(document: Mapping[str, Any], attempt: Path) -> Examined:
    content_hash, error, rows = document["content_hash"], document["error"], document["rows"]
    if error is not None:
        kind = _ERRORS.get(error["kind"], InputUnusableError)
        error = kind(error["what"], where=error["where"], hint=error["hint"])
    if rows is not None:
        if not _HASH.fullmatch(content_hash) or not re.fullmatch("[0-9]+", rows["folder"]):
            raise ValueError(content_hash)
        summary = rows["summary"]
        summary = SourceSummary(**{**summary, "issues": tuple(Issue(**issue) for issue in summary["issues"])})
        partitions = tuple(_sane(Partition(**one), content_hash) for one in rows["partitions"])
        rows = PartitionedFile(summary, attempt / rows["folder"], partitions, rows["size_bytes"])
    return Examined(content_hash, document["kind"], rows=rows, error=error)


def _sane(partition: Partition, content_hash: str) -> Partition:
    form = facts_form().get(partition.table)
    is_raw = form is not None and form.kind == "TABLE" and partition.table.startswith("raw.")
    if not is_raw or partition.mark != mark_of(content_hash) or not 0 < partition.part_count < 10**6:
        raise ValueError(partition.table)
    return partition
