"""What of the given files was not used, and why. In: files that failed or are no traces. Out: rows of meta.issue.

Not handled: what was lost inside a file that was read; its own reader says that.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from traceforge.archives import Archive
from traceforge.errors import NoRanksTraceError, TraceforgeError
from traceforge.files import archives_of, size_bytes
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.unread_formats import unread_hint

_FORGET = """
DELETE FROM meta.issue
WHERE run_id = ? AND source_id IS NULL AND stage = 'ingest' AND LIST_CONTAINS(?, first_at)
"""
_PATHS = "SELECT path FROM meta.source WHERE run_id = ? ORDER BY source_id"
_MOST_NAMES = 20
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Listing:
    """What an ingest was given.

    Attributes:
        names: of all files, of archives that hold some, and of what lies among them and is none, as the database says.
        issues: of archives, and of what is no file.
    """

    names: Sequence[str]
    issues: Sequence[Issue]


@dataclass(frozen=True, slots=True)
class Unused:
    """What an ingest left out.

    Attributes:
        listing: of all that it was given.
        unrecognised: files that are no trace of a known kind.
        failed: files that could not be used, with the error.
    """

    listing: Listing
    unrecognised: Sequence[Path]
    failed: Sequence[tuple[Path, TraceforgeError]]


def listing_of(files: Sequence[Path], skipped: Sequence[tuple[Path, str]], shown: Callable[[Path], str]) -> Listing:
    """The listing of some files.

    Args:
        skipped: what lies among them and is no file, with what it is.
        shown: how a file is named in the database.
    """
    archives = archives_of(files)
    known = [*files, *archives, *(path for path, _ in skipped)]
    issues: list[Issue] = []
    if skipped:
        names = _listed([f"{shown(path)} ({kind})" for path, kind in skipped])
        issues.append(Issue("not_a_regular_file", "warning", len(skipped), shown(skipped[0][0]), f"not read: {names}"))
    issues += [issue for path, archive in archives.items() for issue in _archive_issues(archive, shown(path))]
    return Listing([shown(path) for path in known], issues)


def note_unused(store: Store, run_id: int, shown: Callable[[Path], str], unused: Unused) -> None:
    """Write what was left out; what an earlier ingest noted of the same files is judged anew."""
    store.execute(_FORGET, [run_id, list(unused.listing.names)])
    issues = [_issue_of(shown(path), error) for path, error in unused.failed]
    forms = {_form(path) for (path,) in store.rows(_PATHS, [run_id])}
    missed = [path for path in unused.unrecognised if _form(shown(path)) in forms]
    issues += [_missed(shown(path), size_bytes(path)) for path in missed]
    if strangers := [path for path in unused.unrecognised if path not in missed]:
        names = _listed([shown(path) for path in strangers])
        detail = f"files that are no trace of a known kind were left out: {names}"
        detail += f"; {hint}" if (hint := unread_hint(strangers)) else ""
        issues.append(Issue("file_not_recognised", "info", len(strangers), shown(strangers[0]), detail))
    store.append("meta.issue", issue_rows(run_id, None, "ingest", [*issues, *unused.listing.issues]))


def _form(name: str) -> str:
    """What a name shares with those of the other ranks, and with itself compressed."""
    return _NUMBER.sub("#", name.removesuffix(".gz").removesuffix(".zst"))


def _missed(name: str, size: int) -> Issue:
    """A file that is called like the traces beside it, and holds none."""
    what = "it is empty" if size == 0 else "it is called like a trace beside it, and holds none of a known kind"
    return Issue("file_failed", "error", 1, name, what)


def _issue_of(name: str, error: TraceforgeError) -> Issue:
    """A file that could not be used; that it is no rank's is no damage."""
    if isinstance(error, NoRanksTraceError):
        return Issue("file_of_no_rank", "info", 1, name, error.what)
    return Issue("file_failed", "error", 1, name, error.what)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _archive_issues(archive: Archive, name: str) -> Iterator[Issue]:
    if archive.damage is not None:
        detail = f"the archive is damaged or cut off, and members may be missing: {archive.damage}"
        yield Issue("archive_damaged", "error", 1, name, detail)
    if archive.skipped_bytes:
        detail = "bytes of an archive that belong to no member whose header can be read"
        yield Issue("archive_skipped_bytes", "error", archive.skipped_bytes, name, detail)
    if archive.unread:
        detail = "members that are no files are not read: " + ", ".join(
            f"{count} {kind}" for kind, count in sorted(archive.unread.items())
        )
        yield Issue("archive_member_not_read", "info", archive.unread.total(), name, detail)


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
