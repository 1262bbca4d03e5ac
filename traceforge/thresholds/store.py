"""How a database is best kept."""

from typing import Annotated

from traceforge.thresholds import Meaning

FOLDER_ABOVE_BYTES: Annotated[
    int,
    Meaning(
        "bytes of trace files on disk",
        "Above it a folder is the better database: all workers write it at once, and a file has one writer.",
        "message of ingest",
    ),
] = 1_000_000_000
