"""Folders of our own, beside a database or among temporary files. In: where. Out: a folder that is gone afterwards.

Idea: every such folder holds a mark, which its maker keeps locked for as long as it lives. Nothing without a mark is
ever removed, whatever its name; a marked one whose maker is gone, killed perhaps, is swept by whoever comes next. The
mark is there from the first moment, already locked, and goes last; signals wait until a folder is made or removed.
Not handled: systems without file locks (there nothing is swept); a process killed between the making of a folder and
of its mark, which leaves an empty folder.
"""

import contextlib
import glob
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from traceforge.store.signals import undisturbed

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
    mark = None
    try:
        with undisturbed():
            remove_own(place)
            place.mkdir()
            mark = _locked_mark(place)
        yield place
    finally:
        if mark is not None:
            with undisturbed():
                remove_own(place)
                mark.close()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A marked folder among temporary files; stale ones of killed processes are removed first."""
    sweep(Path(tempfile.gettempdir()), f"{_PREFIX}*")
    with own_folder(Path(tempfile.gettempdir(), f"{_PREFIX}{secrets.token_hex(8)}")) as folder:
        folder.chmod(0o700)
        yield folder


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Have what this process keeps on disk for a moment lie in a folder, and go with it should the process be killed.

    In other threads than the main one nothing changes: the place is that of the whole process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def remove_own(folder: Path) -> None:
    """Remove a folder if it is marked; readers on other machines that still write there find it gone at once."""
    if is_ours(folder):
        gone = folder.with_name(f"{folder.name}.gone-{secrets.token_hex(8)}")
        with contextlib.suppress(OSError):
            folder.rename(gone)
        for path in (folder, gone):
            _remove(path)


def _remove(folder: Path) -> None:
    """Remove a folder, its mark after all else: what is killed meanwhile leaves one that is known as ours."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != _MARK:
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def sweep(parent: Path, pattern: str) -> None:
    """Remove marked folders below a folder whose makers are gone."""
    for folder in parent.glob(pattern):
        with contextlib.suppress(OSError):
            if is_ours(folder) and _is_abandoned(folder):
                remove_own(folder)


def sweep_beside(database: Path, *, is_shared: bool) -> None:
    """Remove what killed processes left beside a database; of spools only where no other may have it open."""
    for kind in ("export-*",) if is_shared else ("export-*", "spool*"):
        sweep(database.parent, f"{glob.escape(database.name)}.{kind}")


def link_or_copy(path: Path, place: Path) -> None:
    """Have the same file in another place."""
    try:
        place.hardlink_to(path)
    except OSError:  # another disk, or one without links
        shutil.copyfile(path, place)


def _locked_mark(folder: Path) -> IO[bytes]:
    """The mark of a new folder, which nobody sees before it is locked."""
    mark = (folder / f"{_MARK}.new").open("wb")
    if fcntl is not None:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (folder / f"{_MARK}.new").rename(folder / _MARK)
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
