"""Answers whole or not at all. In: the place of a file or folder. Out: one beside it, which is moved there in the end.

Idea: it is made in a marked folder of ours, so that nothing of it stays where the disk is full or a signal comes, and
what a killed process leaves is swept by the next one. Not handled: a machine that loses power.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from traceforge.errors import InputUnusableError, UsageError
from traceforge.store.opening import is_unicode
from traceforge.store.places import own_folder, sweep, sweep_beside

_MAKING = "traceforge-export-"


@contextmanager
def new_place(target: Path, *, with_parents: bool = False) -> Iterator[Path]:
    """A place beside a target, of the same name, from where what was made is moved there in the end.

    Args:
        target: a file or folder.
        with_parents: whether the folders above it are made.

    Raises:
        InputUnusableError: something is there already, or nothing can be made there.
    """
    if os.path.lexists(target):
        raise InputUnusableError("there is something of that name already", where=str(target), hint="name a new one")
    if not is_unicode(str(target)):
        raise InputUnusableError("the name of the database is not valid UTF-8", where=str(target), hint="rename it")
    with _failures_said(target):
        if with_parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        elif not target.parent.is_dir():
            why = "the folder above it does not exist"
            raise InputUnusableError(why, where=str(target), hint="make that folder first")
        sweep_beside(target, is_shared=False)
        with own_folder(target.with_name(f"{target.name}.export-{secrets.token_hex(8)}")) as folder:
            yield folder / target.name
            (folder / target.name).rename(target)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Likewise of a folder; where one is there, empty, it is filled and stays: a disk may be mounted there.

    Raises:
        UsageError: it is no empty folder.
        InputUnusableError: nothing can be made there.
    """
    if not os.path.lexists(target):
        with new_place(target, with_parents=True) as place:
            yield place
        return
    with _failures_said(target):
        if target.is_dir():
            sweep(target, f"{_MAKING}*")
        if not target.is_dir() or any(target.iterdir()):
            raise UsageError("is not an empty folder", where=str(target), hint="name another one with -o, or remove it")
        with own_folder(target / f"{_MAKING}{secrets.token_hex(8)}") as folder:
            yield folder / "made"
            for path in (folder / "made").iterdir():
                path.rename(target / path.name)


@contextmanager
def replaced_file(target: Path) -> Iterator[Path]:
    """A new file beside a target, which takes its place in the end, also where an earlier one is there.

    Raises:
        InputUnusableError: it cannot be written.
    """
    making = target.with_name(f".{target.name}.new")
    with _failures_said(target):
        try:
            yield making
            making.replace(target)
        finally:
            making.unlink(missing_ok=True)


@contextmanager
def _failures_said(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputUnusableError(f"cannot be written: {error.strerror or error}", where=str(target)) from error
