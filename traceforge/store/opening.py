"""What goes wrong when a database is opened. In: a path and an error of DuckDB. Out: an error that says what to do."""

import contextlib
import errno
import os
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from traceforge.errors import InputUnusableError, StoreBusyError
from traceforge.files import CATALOGUE, FOLDER_OF_PARTS
from traceforge.store.damage import COPY_OR_INGEST, damaged_file
from traceforge.store.folder import Folder, is_folder_database
from traceforge.store.migrations import facts_form
from traceforge.store.places import link_whole
from traceforge.store.unread_formats import unread_hint

if TYPE_CHECKING:
    import duckdb

HISTORY_MARK = "main.traceforge_history"
"""Table that tells a history of runs."""


def no_traces(path: Path | None, relations: Collection[str]) -> InputUnusableError:
    """That a database is not one of traces.

    Args:
        path: its file.
        relations: names of its tables.
    """
    hint = "name a new file, or one made by `traceforge ingest`"
    if HISTORY_MARK in relations:
        hint = "it is a history: `traceforge history report` shows it, `traceforge sql` asks it"
    return InputUnusableError("this database holds no traces", where=str(path), hint=hint)


def is_unicode(text: str) -> bool:
    """Whether a name can be given to DuckDB."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_place(path: Path | str | None, file: Path | None, *, read_only: bool) -> None:
    """Refuse the name of a database that DuckDB does not take, and one to be read that is not there.

    Args:
        path: as it was given.
        file: its DuckDB file.
        read_only: whether it is to be read.

    Raises:
        InputUnusableError: the name is not valid UTF-8, or there is no such file.
    """
    if path is not None and not is_unicode(str(path)):
        hint = "DuckDB takes no other names; rename it, or the folder above it"
        raise InputUnusableError("the name of the database is not valid UTF-8", where=str(path), hint=hint)
    if read_only and (file is None or not file.exists()):
        hint = "`traceforge ingest FOLDER --db FILE` makes one; check the name and the folder you are in"
        raise InputUnusableError("no such database", where=str(path), hint=hint)


def prepare_folder(folder: Folder) -> None:
    """Have the folder of a folder database, whose catalogue may still be missing.

    Raises:
        InputUnusableError: it cannot lie there, or other things lie in it.
    """
    folder.check_name(frozenset(name for document in facts_form().values() for name in document.types))
    if is_folder_database(folder.path):
        folder.check_catalogue()
        return
    where = str(folder.path)
    if not folder.path.parent.is_dir():
        raise InputUnusableError("the folder above it does not exist", where=where, hint="make that folder first")
    if folder.path.is_dir() and any(not _is_ours(path.name) for path in folder.path.iterdir()):
        hint = hint_of_folder(folder.path) or "name a new folder, or an empty one"
        raise InputUnusableError("other things lie in this folder, and no database", where=where, hint=hint)
    try:
        folder.path.mkdir(exist_ok=True)
    except OSError as error:
        hint = "name a folder where you may write"
        raise InputUnusableError(f"the folder cannot be made: {error.strerror}", where=where, hint=hint) from error


def hint_of_folder(path: Path) -> str:
    """What to do with a folder of ours that is no database; empty where it is none of ours."""
    return unread_hint([*path.glob(f"{FOLDER_OF_PARTS}/*.json"), *islice(path.glob("facts/*/*/*.parquet"), 1)])


def _is_ours(name: str) -> bool:
    return name.startswith(CATALOGUE) or name == FOLDER_OF_PARTS


def literal_of(path: Path | None) -> str:
    """How ATTACH names a file: `md:run` means something to DuckDB."""
    return "':memory:'" if path is None else "'" + str(path.absolute()).replace("'", "''") + "'"


def make_empty(connection: "duckdb.DuckDBPyConnection", path: Path, scratch: Path, options: str) -> bool:
    """Have an empty database in a place where none is: a process that is killed meanwhile leaves a whole one or none.

    Args:
        connection: of DuckDB, to which it is not attached in the end.
        path: its place; one that somebody else makes there at the same time stays, which is told by false.
        scratch: a folder of the same disk.
        options: of ATTACH.

    Raises:
        OSError: it cannot be put there.
    """
    making = scratch / "empty.duckdb"
    connection.execute(f"ATTACH {literal_of(making)} AS empty ({options})")
    connection.execute("DETACH empty")
    return link_whole(making, path)


def remove_database(path: Path | None, folder: Folder | None) -> None:
    """Remove a database that could not be made whole, which would be refused as foreign or damaged later on."""
    if path is not None:
        path.unlink(missing_ok=True)
        path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
    if folder is not None:
        with contextlib.suppress(OSError):
            folder.path.rmdir()  # if nothing else is in it


def _is_kept_from_writing(path: Path, text: str) -> bool:
    reasons = (os.strerror(errno.EROFS), os.strerror(errno.EACCES), os.strerror(errno.EPERM))
    return os.access(path, os.R_OK) and any(reason in text for reason in reasons)


def open_error(path: Path | None, error: Exception, is_new: bool) -> InputUnusableError:
    """The error of ours that says why a file cannot be attached."""
    text = str(error)
    where = str(path)
    if path is not None and path.is_dir():
        return InputUnusableError(
            "this is a folder, not a database",
            where=where,
            hint=hint_of_folder(path)
            or "`traceforge ingest FOLDER --db FILE` makes a database; a database that is a folder ends in `/`",
        )
    if path is not None and not path.parent.is_dir():
        return InputUnusableError(
            "the folder of the database does not exist", where=where, hint="make the folder first"
        )
    if "Could not set lock" in text or "already attached" in text:
        return StoreBusyError(
            "another process holds the database", where=where, hint="wait for it to end, or copy the file"
        )
    if "storage version" in text:
        return InputUnusableError(
            "this DuckDB database is of a newer format than those that traceforge writes",
            where=where,
            hint="name a new file, or one made by `traceforge ingest`",
        )
    if not is_new and (damage := damaged_file(text, path)):
        return damage
    what, hint = "not a DuckDB database, or a damaged one", "name a new file, or one made by `traceforge ingest`"
    if path is not None and path.name == CATALOGUE:
        hint = COPY_OR_INGEST
    if is_new:
        what, hint = f"the database cannot be made: {text}", "make room, or name a file where you may write"
    elif path is not None and _is_kept_from_writing(path, text):
        what = "the database is write-protected"
        hint = "name a file where you may write; what only reads the database works where it is"
    elif path is not None and path.exists() and not os.access(path, os.R_OK):
        what, hint = "the database cannot be read: you have no right to", "ask its owner for it, or for a copy"
    return InputUnusableError(what, where=where, hint=hint)
