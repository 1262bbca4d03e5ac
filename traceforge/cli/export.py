"""`traceforge export FORMAT DB`: what a database holds, as files of other programs."""

import re
from pathlib import Path
from typing import Annotated

import typer

from traceforge.cli.console import note

export = typer.Typer(help="Write what a database holds as files of other programs.", no_args_is_help=True)
_UNSAFE = re.compile(r"[^\w.-]+")


@export.callback()
def _formats() -> None:
    """Write what a database holds as files of other programs."""


@export.command()
def chakra(
    db: Annotated[Path, typer.Argument(help="Trace database that holds execution traces.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path(),
    run: Annotated[str | None, typer.Option(help="Name of the run, where the database holds several.")] = None,
    prefix: Annotated[str | None, typer.Option(help="Files are PREFIX.RANK.et; by default the run's name.")] = None,
) -> None:
    """Write Chakra execution traces, one `.et` file a rank, for simulators such as ASTRA-sim."""
    from traceforge import api
    from traceforge.export.chakra import export_chakra

    with api.open_built(db) as store:
        run_id = api.run_id(store, run)
        name = str(store.query("SELECT run_name FROM meta.run WHERE run_id = ?", [run_id]).item())
        for file in export_chakra(store, run_id, output, _UNSAFE.sub("_", prefix or name)):
            typer.echo(file.path)
            warning = "; structure only, it has no times" if file.label == "structure_only" else ""
            note(f"rank {file.rank}: {file.node_count} nodes, {file.label}{warning}")
