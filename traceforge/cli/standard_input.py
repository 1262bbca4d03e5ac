"""Traces from another program. In: `-` among the paths. Out: a file that holds what came on standard input.

Idea: what comes is one file: a tar, or a trace, compressed or not; readers seek in it and other processes open it, so
it is kept on disk for as long as it is read. Memory stays small; the disk for temporary files must hold it.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from traceforge.errors import InputUnusableError, UsageError

STANDARD_INPUT = Path("-")
_PIECE_BYTES = 1024 * 1024


@contextmanager
def without_standard_input(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The same paths, with a temporary file in the place of `-`.

    Raises:
        UsageError: standard input is a terminal.
        InputUnusableError: nothing came, or there is no room for it.
    """
    if STANDARD_INPUT not in paths:
        yield list(paths)
        return
    from traceforge.store.places import temporary_folder

    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("`-` reads a tar or a trace from standard input, which is a terminal",
                         hint="aws s3 cp s3://bucket/traces.tar - | traceforge ingest - --db job.duckdb")  # fmt: skip
    with temporary_folder() as folder:
        # Its name, and the folder's, are what the database and reports say.
        copy = folder / "standard-input" / "traces"
        copy.parent.mkdir()
        try:
            with copy.open("wb") as target:
                shutil.copyfileobj(sys.stdin.buffer, target, _PIECE_BYTES)
        except OSError as error:
            raise InputUnusableError(f"cannot be kept: {error.strerror}", where="standard input",
                                     hint="set TMPDIR to a place with room for all of it") from error  # fmt: skip
        if not copy.stat().st_size:
            raise InputUnusableError("nothing came", where="standard input")
        yield [copy if path == STANDARD_INPUT else path for path in paths]
