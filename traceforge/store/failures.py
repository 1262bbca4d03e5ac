"""What a failure ends. In: whatever was raised while one file was read or added. Out: an error of that file alone.

Idea: any error of a reader costs its file, not the job. Only what would meet the next file as well ends the job: a full
disk, a database that can no longer be written, or a cluster that cannot read.
"""

import errno
import os
import traceback
from pathlib import Path

from traceforge.errors import ClusterError, InputUnusableError, TraceforgeError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_LONGEST_REASON = 300


def failure_of(path: Path, error: Exception) -> TraceforgeError:
    """The error of a file.

    Raises:
        Exception: the error itself, where no other file could be added either.
    """
    if isinstance(error, TraceforgeError) and not isinstance(error, ClusterError):
        return error
    if _ends_the_job(error):
        raise error
    if os.environ.get("TRACEFORGE_DEBUG"):
        traceback.print_exception(error)
    reason = " ".join(str(error).split())[:_LONGEST_REASON]
    return InputUnusableError(
        f"its reader failed: {type(error).__name__}: {reason}",
        where=str(path),
        hint="the other files are not affected; TRACEFORGE_DEBUG=1 prints where it failed",
    )


def _ends_the_job(error: Exception) -> bool:
    import duckdb

    if isinstance(error, ClusterError) or (isinstance(error, OSError) and error.errno in _NO_ROOM):
        return True
    if any(os.strerror(number) in str(error) for number in _NO_ROOM):
        return True
    return isinstance(error, duckdb.IOException | duckdb.FatalException | duckdb.InternalException)
