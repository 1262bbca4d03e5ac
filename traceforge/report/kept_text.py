"""A text that takes long to make and is always the same, kept between processes. In: its name, how to make it. Out: it.

It lies in `traceforge/` of the user's cache (`$XDG_CACHE_HOME`, or `~/.cache`), with its SHA-256 before it. What others
could have written is not read, and where nothing can be kept the text is made each time: no answer depends on it.
Not handled: removal of what former versions left; the names carry versions, and a file is below 1 MB.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path


def kept_text(name: str, make: Callable[[], str]) -> str:
    """The text of that name as it was kept, or as it is made now.

    Args:
        name: of the file; must change whenever the text would.
        make: gives the text.
    """
    folder = _folder()
    if folder is None:
        return make()
    text = _read(folder / name)
    if text is None:
        text = make()
        _write(folder / name, text)
    return text


def _folder() -> Path | None:
    stated = os.environ.get("XDG_CACHE_HOME", "")
    try:
        cache = Path(stated) if stated.startswith("/") else Path.home() / ".cache"
    except RuntimeError:  # nobody's home is known
        return None
    return cache / "traceforge"


def _read(path: Path) -> str | None:
    """The text, unless it is missing, damaged, or in a place where others may write."""
    try:
        if not all(_is_ours(place) for place in (path.parent, path)):
            return None
        digest, _, kept = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return kept.decode("utf-8") if digest == _digest(kept) else None


def _is_ours(path: Path) -> bool:
    status = path.stat(follow_symlinks=False)
    is_plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return is_plain and status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _write(path: Path, text: str) -> None:
    """Keep the text if that is possible: readers see all of it or nothing."""
    part = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(path.parent):
            return
        handle, part = tempfile.mkstemp(dir=path.parent)
        kept = text.encode("utf-8")
        with os.fdopen(handle, "wb") as file:
            file.write(_digest(kept) + b"\n" + kept)
        Path(part).replace(path)
        part = None
    except OSError:
        return  # it is made anew each time
    finally:
        if part is not None:
            Path(part).unlink(missing_ok=True)


def _digest(kept: bytes) -> bytes:
    return hashlib.sha256(kept).hexdigest().encode("ascii")
