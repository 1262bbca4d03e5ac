"""`traceforge pack FOLDER FILE`, `traceforge unpack FILE FOLDER`: one form of a database into the other."""

from pathlib import Path
from typing import Annotated

import typer

from traceforge.cli.console import note


def pack(
    folder: Annotated[Path, typer.Argument(help="Database that is a folder.")],
    file: Annotated[Path, typer.Argument(help="DuckDB file to make.")],
) -> None:
    """Make one file of a database that is a folder, to send it or to ask it with any DuckDB client."""
    from traceforge import api

    api.pack(folder, file)
    note(f"database: {file}")


def unpack(
    file: Annotated[Path, typer.Argument(help="Database that is a DuckDB file.")],
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
) -> None:
    """Make a folder of Parquet partitions and a catalogue of a database that is a file."""
    from traceforge import api

    api.unpack(file, folder)
    note(f"database: {folder}")
