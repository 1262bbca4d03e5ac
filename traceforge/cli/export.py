"""`traceforge export FORMAT DB`: what a database holds, as files of other programs."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.command import audible
from traceforge.cli.console import note
from traceforge.cli.inputs import TARGET_HELP, opened
from traceforge.units import plural

if TYPE_CHECKING:
    from traceforge.redaction import Redaction
    from traceforge.store.database import Store

export = typer.Typer(help="Export the contents of a database for other programs.", no_args_is_help=True)
Redact = Annotated[
    bool,
    typer.Option("--redact", help="Replace the names of hosts, files, users, processes and the job: host-1, path-1 …"),
]
_UNSAFE = re.compile(r"[^\w.-]+")


@export.callback()
def _formats() -> None:
    """Export the contents of a database for other programs."""


@export.command()
@audible
def chakra(
    db: Annotated[Path, typer.Argument(help=TARGET_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write into.")] = Path(),
    run: Annotated[str | None, typer.Option(help="Name of the run, where the database holds several.")] = None,
    prefix: Annotated[str | None, typer.Option(help="Files are PREFIX.RANK.et; by default the run's name.")] = None,
    redact: Redact = False,
) -> None:
    """Write Chakra execution traces, for simulators such as ASTRA-sim. One `.et` file a rank."""
    from traceforge import api
    from traceforge.export.chakra import export_chakra

    with opened(db) as store:
        run_id = api.run_id(store, run)
        name = str(store.value("SELECT run_name FROM meta.run WHERE run_id = ?", [run_id]))
        redaction = _redaction(store, redact)
        shown = prefix or (redaction.name("job", name) if redaction else name)
        for file in export_chakra(store, run_id, output, _UNSAFE.sub("_", shown), redaction):
            typer.echo(file.path)
            warning = "; structure only, it has no times" if file.label == "structure_only" else ""
            note(f"rank {file.rank}: {plural(file.node_count, 'node')}, {file.label}{warning}")


@export.command()
@audible
def perfetto(
    db: Annotated[Path, typer.Argument(help=TARGET_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Archive to write.")] = Path("perfetto.tar"),
    traces: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="File or folder among which the run's traces are, known by their hash; may be repeated.",
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Name of the run, where the database holds several.")] = None,
    redact: Redact = False,
) -> None:
    """Write the run's traces on one clock, for ui.perfetto.dev.

    One TAR holds the traces, untouched, and findings as tracks. With --redact they are written anew from the database:
    names replaced, times exact, other arguments left out. The page runs in your browser; nothing is sent. It needs
    Perfetto 58 or later.
    """
    from traceforge import api
    from traceforge.export.perfetto import export_perfetto

    with opened(db) as store:
        made = export_perfetto(store, api.run_id(store, run), traces or [], output, _redaction(store, redact))
    typer.echo(made.path)
    note(
        f"{plural(len(made.ranks), 'trace')}; clocks drift by up to {made.largest_drift_ns / 1e3:.1f} us within a file"
    )
    for path in made.missing:
        note(f"not found, left out: {path}")
    if made.unaligned:
        ranks = "rank" if len(made.unaligned) == 1 else "ranks"
        note(f"without a common clock: {ranks} {', '.join(map(str, made.unaligned))}")
    if made.left_out:
        note(f"not drawn: {plural(made.left_out, 'shorter wait')}")


@export.command()
@audible
def parquet(
    db: Annotated[Path, typer.Argument(help=TARGET_HELP)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write, new or empty.")],
    run: Annotated[str | None, typer.Option(help="Name of a run; all runs without it.")] = None,
    facts: Annotated[bool, typer.Option("--facts", help="Also write raw.*, by far the largest part.")] = False,
    redact: Redact = False,
) -> None:
    """Write all tables as Parquet. A folder a table, partitioned by run, with tables.json and README.md."""
    from traceforge import api
    from traceforge.export.parquet import export_parquet

    with opened(db) as store:
        run_id = None if run is None else api.run_id(store, run)
        redaction = _redaction(store, redact)
        tables = export_parquet(store, output, run_id=run_id, with_facts=facts, redaction=redaction)
    typer.echo(output)
    note(f"{plural(len(tables), 'table')}, {plural(sum(table.row_count for table in tables), 'row')}")


def _redaction(store: "Store", wanted: bool) -> "Redaction | None":
    from traceforge.redaction import Redaction

    return Redaction.of(store) if wanted else None
