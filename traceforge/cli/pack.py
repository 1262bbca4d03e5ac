"""`traceforge pack FOLDER FILE`, `traceforge unpack FILE FOLDER`: one form of a database into the other."""

from pathlib import Path
from typing import Annotated

import typer

from traceforge.cli.console import note


def pack(
    folder: Annotated[Path, typer.Argument(help="Database that is a folder.")],
    file: Annotated[Path, typer.Argument(help="DuckDB file to make.")],
) -> None:
    """Turn a folder database into one file.

    Any DuckDB client opens it, and it can be sent.
    """
    from traceforge import api

    api.pack(folder, file)
    note(f"database: {file}")


def unpack(
    file: Annotated[Path, typer.Argument(help="Database that is a DuckDB file.")],
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
) -> None:
    """Turn a file database into a folder.

    The folder holds Parquet partitions and a catalogue; several readers write it at once.
    """
    from traceforge import api

    api.unpack(file, folder)
    note(f"database: {folder}")
