"""What a command is given: a database, or traces that it reads into a temporary one first. Out: an open store."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traceforge.cli.ingest import ShownOptions, ingest_shown
from traceforge.cli.progress import progress
from traceforge.cli.standard_input import STANDARD_INPUT, without_standard_input
from traceforge.files import check_exists, find_files, size_bytes

if TYPE_CHECKING:
    from traceforge.store.database import Store

_WORTH_FOLDER_BYTES = 1_000_000  # of a trace on disk, on average
TARGET_HELP = "Folder of traces, a trace file, or a database made by `ingest` (a file or a folder)."


@contextmanager
def opened(target: Path, options: ShownOptions | None = None) -> "Iterator[Store]":
    """The database itself, its stages current; or a temporary one of the traces.

    Raises:
        InputUnusableError: there is nothing of that name, or nothing usable in it.
    """
    from traceforge import api
    from traceforge.store.database import Store
    from traceforge.store.folder import is_database
    from traceforge.store.places import temporary_folder
    from traceforge.store.workers import worker_count

    if target == STANDARD_INPUT:
        with without_standard_input([target]) as (copy,), opened(copy, options) as store:
            yield store
        return
    check_exists(target)
    if is_database(target):
        with progress() as shown:
            chosen = options or ShownOptions()
            built = api.open_built(target, chosen.reference, shown.on_table, chosen.rates, chosen.racks)
        with built as store:
            yield store
        return
    chosen = options or ShownOptions()
    sizes = list(map(size_bytes, find_files([target])))
    # Workers fill a folder themselves, and read it again where it lies; small traces are cheaper in a file.
    is_folder = worker_count(chosen.jobs, sizes) > 1 and sum(sizes) >= _WORTH_FOLDER_BYTES * len(sizes)
    name = f"traces{os.sep}" if is_folder else "traces.duckdb"
    with temporary_folder() as folder, Store(f"{folder}{os.sep}{name}", is_kept=False) as store:
        ingest_shown([target], store, chosen)
        yield store


def print_json(document: Mapping[str, object]) -> None:
    """A JSON document with its `schema_version` on stdout; what JSON lacks (NaN) is an error of ours."""
    text = json.dumps({"schema_version": 1, **document}, indent=2, ensure_ascii=True, allow_nan=False)
    sys.stdout.write(text + "\n")
