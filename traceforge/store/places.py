"""Folders of our own, beside a database or among temporary files. In: where. Out: a folder that is gone afterwards.

Idea: every such folder holds a mark, which its maker keeps locked for as long as it lives. Nothing without a mark is
ever removed, whatever its name; a marked one whose maker is gone, killed perhaps, is swept by whoever comes next. The
mark is there from the first moment, already locked, and goes last; signals wait until a folder is made or removed.
A folder gets its own name when it is marked; what is killed before leaves an empty one whose name tells whose it was.
Not handled: systems without file locks (there nothing is swept).
"""

import contextlib
import errno
import glob
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
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
_UNMARKED = re.compile(r"\.new-[0-9a-f]{16}$")
_UNMARKED_FOR_S = 10.0  # its maker marks it in the next moment, unless it was killed


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
    return _free_place(database, "spool")


def _free_place(database: Path, kind: str) -> Path:
    """Where no folder of somebody else's lies."""
    names = [f"{database.name}.{kind}", *(f"{database.name}.{kind}-{number}" for number in range(2, _MOST_NAMES))]
    places = [database.with_name(name) for name in names]
    return next((place for place in places if not os.path.lexists(place) or _was_left(place)), places[-1])


class SpillFolder:
    """Where DuckDB puts on disk what does not fit into memory, beside the database.

    Attributes:
        path: of the folder; None of a database in memory. It is marked, unless nothing can be written there: then
            DuckDB makes it where it has to.
        own: the same where it is marked, else None.
    """

    def __init__(self, database: Path | None, *, is_shared: bool) -> None:
        self._open = contextlib.ExitStack()
        self.own: Path | None = None
        self.path = None if database is None else database.with_name(f"{database.name}.tmp")
        if database is not None:
            place = (
                database.with_name(f"{database.name}.spill-{secrets.token_hex(8)}")
                if is_shared
                else _free_place(database, "tmp")
            )
            with contextlib.suppress(OSError):
                self.path = self.own = self._open.enter_context(own_folder(place))

    def close(self) -> None:
        """Remove it, once nobody writes there any more."""
        self._open.close()


def is_ours(folder: Path) -> bool:
    """Whether a folder is marked as one of ours."""
    return not folder.is_symlink() and (folder / _MARK).is_file()


@contextmanager
def own_folder(place: Path) -> Iterator[Path]:
    """A marked folder, empty at first and removed in the end.

    Raises:
        OSError: something else is there, or one whose maker lives, or it cannot be made.
    """
    mark = None
    try:
        with undisturbed():
            if _was_left(place):
                remove_own(place)
            mark = _made(place)
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
    """Remove marked folders below a folder whose makers are gone, and empty ones that they did not live to mark."""
    for folder in parent.glob(pattern):
        with contextlib.suppress(OSError):
            if is_ours(folder) and _is_abandoned(folder):
                remove_own(folder)
            elif _UNMARKED.search(folder.name) and time.time() - folder.stat().st_mtime > _UNMARKED_FOR_S:
                folder.rmdir()  # which fails where anything is in it


def sweep_beside(database: Path, *, is_shared: bool) -> None:
    """Remove what killed processes left beside a database; of spools only where no other may have it open."""
    for kind in ("export-*", "spill-*", *(() if is_shared else ("spool*", "tmp*"))):
        sweep(database.parent, f"{glob.escape(database.name)}.{kind}")


def link_or_copy(path: Path, place: Path) -> None:
    """Have the same file in another place."""
    try:
        place.hardlink_to(path)
    except OSError:  # another disk, or one without links
        shutil.copyfile(path, place)


def link_whole(made: Path, place: Path) -> bool:
    """Move a file to a place; false where somebody else has put one there meanwhile, which stays."""
    is_taken = False
    try:
        place.hardlink_to(made)
    except FileExistsError:
        is_taken = True
    except OSError:  # a disk without links
        is_taken = place.exists()
        if not is_taken:
            made.rename(place)
    made.unlink(missing_ok=True)
    return not is_taken


def _made(place: Path) -> IO[bytes]:
    """Make a folder, which has its name only once it is marked; its mark."""
    if os.path.lexists(place):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    new = place.with_name(f"{place.name}.new-{secrets.token_hex(8)}")
    new.mkdir()
    try:
        mark = _locked_mark(new)
        new.rename(place)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return mark


def _locked_mark(folder: Path) -> IO[bytes]:
    """The mark of a new folder, which nobody sees before it is locked."""
    mark = (folder / f"{_MARK}.new").open("wb")
    if fcntl is not None:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (folder / f"{_MARK}.new").rename(folder / _MARK)
    return mark


def _was_left(folder: Path) -> bool:
    """Whether a folder is one of ours whose maker is gone; it may go in the same moment."""
    try:
        return is_ours(folder) and _is_abandoned(folder)
    except OSError:
        return False


def _is_abandoned(folder: Path) -> bool:
    if fcntl is None or folder.stat().st_uid != os.getuid():
        return False
    with (folder / _MARK).open("rb") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True
