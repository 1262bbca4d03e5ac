"""Whether a folder would be the better database. In: a path and the size of what goes into it. Out: a line, or none."""

from pathlib import Path

from traceforge.thresholds import store as thresholds
from traceforge.units import format_bytes


def folder_advice(database: Path, size_bytes: int) -> str | None:
    """What to say of a database that is a file.

    Args:
        size_bytes: of the trace files on disk.
    """
    if size_bytes <= thresholds.FOLDER_ABOVE_BYTES:
        return None
    limit, folder = format_bytes(thresholds.FOLDER_ABOVE_BYTES), database.with_suffix("")
    return (
        f"{format_bytes(size_bytes)} of traces: above {limit} a folder is the better database, since all workers write"
        f" it at once: --db {folder}/, or later `traceforge unpack {database} {folder}/`"
    )
