"""One archive for Perfetto. In: a run of a store and its traces. Out: a TAR of them on one clock, with our findings.

Idea: the traces stay as they are; `perfetto_manifest.json` (format 1 of Perfetto 58) states each trace's clock offset,
and `traceforge.json` adds tracks with the findings and is the reference clock. Files are identified by size and hash.
Compressed ones are inflated, since Perfetto shifts no file inside another; names of members are made of ranks, never of
text from a trace or a path. A redacted export does not copy the traces but writes them from the database (see
`redacted_trace`), so the files need not exist. Not handled: drift, which the format cannot state (the largest error is
reported); ranks without a clock, which keep the times of their file.
"""

import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, cast

from traceforge.errors import InputUnusableError, UsageError
from traceforge.export.perfetto_tracks import finding_tracks
from traceforge.export.redacted_trace import write_trace
from traceforge.files import content_hash, find_files, open_bytes, size_bytes
from traceforge.redaction import Redaction
from traceforge.store.database import Store
from traceforge.store.targets import new_place
from traceforge.version import __version__

TRACKS, MANIFEST = "traceforge.json", "perfetto_manifest.json"
_IN_MEMORY_BYTES = 64 * 1024 * 1024
_LONGEST_ATTRIBUTE = 400
# How far a clock is ahead in the middle of its file and at both ends.
_FILES = """
WITH recorded AS (
  SELECT r.rank, r.source_id, COALESCE(r.host, s.host) AS host, r.raw_first_ns, r.raw_last_ns, s.path, s.size_bytes,
    s.content_hash, f.base_time_ns, k.offset_ns IS NOT NULL AS is_aligned
  FROM align.rank AS r
  JOIN meta.source AS s USING (source_id)
  JOIN raw.profile AS f USING (source_id)
  LEFT JOIN align.clock AS k ON k.run_id = r.run_id AND k.rank = r.rank
  WHERE r.run_id = ? AND r.raw_first_ns IS NOT NULL
),
reading AS (
  SELECT *, UNNEST([0, 1, 2]) AS place,
    UNNEST([raw_first_ns, raw_first_ns + (raw_last_ns - raw_first_ns) // 2, raw_last_ns]) AS raw_ns
  FROM recorded
),
ahead AS (
  SELECT d.*, COALESCE(align.ahead_ns(d.raw_ns, p), 0) AS ahead_ns
  FROM reading AS d
  ASOF LEFT JOIN align.clock_piece AS p
    ON p.run_id = ? AND p.rank = d.rank AND p.raw_from_ns <= d.raw_ns
)
SELECT rank, source_id, host, path, size_bytes, content_hash, base_time_ns, is_aligned,
  MIN(raw_first_ns) AS raw_first_ns, MIN(ahead_ns) FILTER (WHERE place = 1) AS ahead_ns,
  MAX(ahead_ns) - MIN(ahead_ns) AS drift_ns
FROM ahead
GROUP BY ALL
ORDER BY rank
"""


@dataclass(frozen=True, slots=True)
class ExportedArchive:
    """What was written.

    Attributes:
        path: of the archive.
        ranks: whose traces are in it.
        missing: names of traces that were not found, as stored in the database.
        unaligned: ranks whose clock offset is unknown.
        largest_drift_ns: the most that a file's offset changes over its length, which the archive cannot express.
        left_out: waits that are not drawn because there are too many.
    """

    path: Path
    ranks: list[int]
    missing: list[str]
    unaligned: list[int]
    largest_drift_ns: int
    left_out: int


@dataclass(frozen=True, slots=True)
class _TraceFile:
    rank: int
    source_id: int
    host: str | None
    path: str
    size_bytes: int
    content_hash: str
    base_time_ns: int
    is_aligned: bool
    raw_first_ns: int
    ahead_ns: int
    drift_ns: int

    @property
    def member(self) -> str:
        return f"rank{self.rank:05d}.pt.trace.json"


def export_perfetto(
    store: Store, run_id: int, traces: Sequence[Path], target: Path, redaction: Redaction | None = None
) -> ExportedArchive:
    """Write the archive.

    Args:
        store: with its stages built.
        run_id: the run.
        traces: files and folders to search for the run's traces; where empty, the paths from which they were ingested,
            relative to the working directory and to the database.
        target: the archive; must not exist.
        redaction: replaces the names of hosts, files, users, processes and the job; `traces` are not needed then.

    Raises:
        UsageError: the target exists.
        InputUnusableError: the run has no timeline, none of its files is found, or it cannot be written.
    """
    if target.exists():
        raise UsageError("exists already", where=str(target), hint="name another file with -o, or remove it")
    files = [_TraceFile(**row) for row in store.records(_FILES, [run_id, run_id])]
    if not files:
        raise InputUnusableError("the run holds no timeline", where=str(store.path), hint="ingest profiler traces")
    found = {} if redaction else _located(store, files, traces)
    start_ns = min(file.raw_first_ns - file.ahead_ns for file in files)
    tracks = finding_tracks(store, run_id, start_ns, redaction)
    present = [file for file in files if redaction or file.content_hash in found]
    manifest = _manifest(store, run_id, present, start_ns, redaction)
    with new_place(target, with_parents=True) as place, tarfile.open(place, "w") as archive:
        _add(archive, MANIFEST, io.BytesIO(json.dumps(manifest, indent=1).encode()))
        _add(archive, TRACKS, io.BytesIO(tracks.text.encode()))
        for file in present:
            with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES, dir=str(place.parent)) as copy:
                if redaction:
                    write_trace(store, file.source_id, file.base_time_ns, redaction, cast(BinaryIO, copy))
                else:
                    _inflate(found[file.content_hash], copy)
                _add(archive, file.member, copy)
    return ExportedArchive(
        target,
        [file.rank for file in present],
        [file.path for file in files if file not in present],
        [file.rank for file in present if not file.is_aligned],
        max(file.drift_ns for file in present),
        tracks.left_out,
    )


def _located(store: Store, files: Sequence[_TraceFile], traces: Sequence[Path]) -> dict[str, Path]:
    found = _found(files, _candidates(store, files, traces))
    if not found:
        hint = "say where they are: --traces FOLDER (they are identified by their hash)"
        raise InputUnusableError(f"none of the run's {len(files)} traces is found", where=files[0].path, hint=hint)
    return found


def _candidates(store: Store, files: Sequence[_TraceFile], traces: Sequence[Path]) -> Iterable[Path]:
    """Files that may be the run's traces."""
    if traces:
        return find_files(traces)
    bases = [Path(), *([store.path.parent] if store.path is not None else [])]
    # The first part of a path is the ingested folder, or a file or folder in it.
    tails = [parts[start:] for file in files for parts in [Path(file.path).parts] for start in (0, 1) if parts[start:]]
    places = dict.fromkeys(base.joinpath(*tail) for base in bases for tail in tails)
    return [place for place in places if place.is_file()]


def _found(files: Sequence[_TraceFile], candidates: Iterable[Path]) -> dict[str, Path]:
    """Paths of the files by hash."""
    wanted: dict[int, set[str]] = {}
    for file in files:
        wanted.setdefault(file.size_bytes, set()).add(file.content_hash)
    found: dict[str, Path] = {}
    for place in candidates:
        hashes = wanted.get(size_bytes(place))
        if hashes and (known := content_hash(place)) in hashes:
            found.setdefault(known, place)
    return found


def _manifest(
    store: Store, run_id: int, files: Sequence[_TraceFile], start_ns: int, redaction: Redaction | None
) -> dict[str, object]:
    row = store.query(
        "SELECT r.run_name, v.headline FROM meta.run AS r LEFT JOIN attribute.verdict AS v USING (run_id)"
        " WHERE run_id = ?",
        [run_id],
    )
    name, headline = (redaction.frame(row) if redaction else row).row(0)
    hosts = {file.host: redaction.name("host", file.host) if redaction else file.host for file in files if file.host}
    entries = [_entry(file, hosts.get(file.host or ""), start_ns) for file in files]
    return {
        "perfetto_manifest": {
            "version": 1,
            "files": [{"path": TRACKS, "machine": {"name": "traceforge"}}, *entries],
            "attributes": {
                "traceforge.version": __version__,
                "traceforge.run": str(name)[:_LONGEST_ATTRIBUTE],
                "traceforge.verdict": str(headline or "")[:_LONGEST_ATTRIBUTE],
            },
        }
    }


def _entry(file: _TraceFile, host: str | None, start_ns: int) -> dict[str, object]:
    # One machine per rank: in containers each rank calls its device 0, and Perfetto would merge them into one process.
    name = f"rank {file.rank}" + (f" ({host[:100]})" if host else "")
    entry: dict[str, object] = {"path": file.member, "machine": {"name": name}}
    if file.is_aligned:
        # The same instant is raw - base in the file and raw - ahead - start on our tracks.
        entry["clocks"] = {
            "sync_to": {"file": TRACKS},
            "offset_ns": file.base_time_ns - file.ahead_ns - start_ns,
        }
    return entry


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    """Add a temporary file to an archive, which states the size first."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = content.seek(0, io.SEEK_END), 0o644
    content.seek(0)
    archive.addfile(member, content)


def _inflate(path: Path, copy: IO[bytes]) -> None:
    with open_bytes(path) as content:
        shutil.copyfileobj(content, copy, 1024 * 1024)
