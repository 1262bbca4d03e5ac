"""Files to be written. In: their paths, and text. Out: the files, or why not before reading begins.

Idea: whoever mistypes loses an answer at most, never a recording: a file that is a trace or a database by its content,
under whatever name or link, is not replaced. Any other is: an earlier answer has no mark of its own.
Not handled: a file that becomes one of these while the command runs.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from traceforge.errors import InputUnusableError, UsageError

STANDARD_OUTPUT = Path("-")


def check_outputs(outputs: Sequence[Path | None], inputs: Sequence[Path | None] = ()) -> None:
    """Refuse files that cannot or must not be written, before the work whose answer they shall hold.

    Args:
        outputs: files to write; None is none, and `-` the standard output.
        inputs: files that are read, and are no traces or databases.

    Raises:
        UsageError: one is a trace, a database or an input, or stands for two answers.
        InputUnusableError: one is a folder, or lies in none.
    """
    read = {path.resolve() for path in inputs if path is not None}
    written = set[Path]()
    for path in outputs:
        if path is None:
            continue
        is_file = path != STANDARD_OUTPUT
        if is_file:
            _check_place(path)
        place = path.resolve() if is_file else path
        if place in written:
            raise UsageError("two answers would be written to it", where=str(path), hint="name a file for each")
        if is_file and (kind := "read" if place in read else _recorded(path)) is not None:
            why = f"it is {kind}, and no answer is written over that"
            raise UsageError(why, where=str(path), hint="name another file")
        written.add(place)


def _check_place(path: Path) -> None:
    if path.is_dir():
        raise InputUnusableError("cannot be written: it is a folder", where=str(path), hint="name a file in it")
    if not path.parent.is_dir():
        why = f"cannot be written: there is no folder {path.parent}"
        raise InputUnusableError(why, where=str(path), hint="make it first")


def _recorded(path: Path) -> str | None:
    """What was recorded in a file; None of one that is missing, no file, or anything else."""
    from traceforge import api
    from traceforge.store.folder import is_database
    from traceforge.store.spool import kind_of

    if not path.is_file():
        return None
    if is_database(path):
        return "a database"
    kind = kind_of(path, api.sources())
    return None if kind is None else f"a trace ({kind})"


def write_text(path: Path, text: str) -> None:
    """A file with this text, whole or not at all: an earlier one stays where the disk is full, and its rights are kept.

    Args:
        path: `-` is the standard output.

    Raises:
        InputUnusableError: it cannot be written.
    """
    if path == STANDARD_OUTPUT:
        sys.stdout.write(text)
        return
    place = path.resolve()
    is_plain = place.is_file() or not place.exists()
    making = place.with_name(f".{place.name}.new") if is_plain else place
    try:
        if place.is_file():
            making.touch()
            shutil.copymode(place, making)
        making.write_text(text, encoding="utf-8")
        if is_plain:
            making.replace(place)
    except OSError as error:
        if is_plain:
            making.unlink(missing_ok=True)
        hint = "name a file in a folder where you may write"
        raise InputUnusableError(f"cannot be written: {error.strerror}", where=str(path), hint=hint) from error
