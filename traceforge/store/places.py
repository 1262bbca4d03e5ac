"""Folders of our own, beside a database or among temporary files. In: where. Out: a folder that is gone afterwards.

Idea: every such folder holds a mark, which its maker keeps locked for as long as it lives. Nothing without a mark is
ever removed, whatever its name; a marked one whose maker is gone, killed perhaps, is swept by whoever comes next.
Not handled: systems without file locks (there nothing is swept).
"""

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MARK = ".made-by-traceforge"
_PREFIX = "traceforge-"
_MOST_NAMES = 100


def place_beside(database: Path | None, *, is_shared: bool) -> Path:
    """Where the scratch folder of an open database is to lie; it need not exist.

    Args:
        database: None for one in memory, whose folder lies among temporary files.
        is_shared: whether other processes may have the same database open.
    """
    token = secrets.token_hex(8)
    if database is None or (is_shared and not os.access(database.parent, os.W_OK)):
        return Path(tempfile.gettempdir(), f"{_PREFIX}scratch-{token}")
    if is_shared:
        return database.with_name(f"{database.name}.export-{token}")
    names = [f"{database.name}.spool", *(f"{database.name}.spool-{number}" for number in range(2, _MOST_NAMES))]
    places = [database.with_name(name) for name in names]
    return next((place for place in places if is_ours(place) or not os.path.lexists(place)), places[-1])


def is_ours(folder: Path) -> bool:
    """Whether a folder is marked as one of ours."""
    return not folder.is_symlink() and (folder / _MARK).is_file()


@contextmanager
def own_folder(place: Path) -> Iterator[Path]:
    """A marked folder, empty at first and removed in the end.

    Raises:
        OSError: something else is there, or it cannot be made.
    """
    remove_own(place)
    place.mkdir()
    mark = _locked_mark(place)
    try:
        yield place
    finally:
        remove_own(place)
        mark.close()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A marked folder among temporary files; stale ones of killed processes are removed first."""
    sweep(Path(tempfile.gettempdir()), f"{_PREFIX}*")
    with own_folder(Path(tempfile.gettempdir(), f"{_PREFIX}{secrets.token_hex(8)}")) as folder:
        folder.chmod(0o700)
        yield folder


def remove_own(folder: Path) -> None:
    """Remove a folder if it is marked; readers on other machines that still write there find it gone at once."""
    if is_ours(folder):
        gone = folder.with_name(f"{folder.name}.gone-{secrets.token_hex(8)}")
        with contextlib.suppress(OSError):
            folder.rename(gone)
        for path in (folder, gone):
            shutil.rmtree(path, ignore_errors=True)


def sweep(parent: Path, pattern: str) -> None:
    """Remove marked folders below a folder whose makers are gone."""
    for folder in parent.glob(pattern):
        with contextlib.suppress(OSError):
            if is_ours(folder) and _is_abandoned(folder):
                remove_own(folder)


def link_or_copy(path: Path, place: Path) -> None:
    """Have the same file in another place."""
    try:
        place.hardlink_to(path)
    except OSError:  # another disk, or one without links
        shutil.copyfile(path, place)


def _locked_mark(folder: Path) -> IO[bytes]:
    mark = (folder / _MARK).open("wb")
    if fcntl is not None:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return mark


def _is_abandoned(folder: Path) -> bool:
    if fcntl is None or folder.stat().st_uid != os.getuid():
        return False
    with (folder / _MARK).open("rb") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True
