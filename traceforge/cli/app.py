"""All commands in one parser of arguments. In: the functions of the commands. Out: `app`.

Apart from `main`, since to load the parser takes longer than some questions take to answer.
"""

import typer

from traceforge.cli.check import check
from traceforge.cli.command import audible
from traceforge.cli.compare import compare
from traceforge.cli.demo import demo
from traceforge.cli.doctor import doctor
from traceforge.cli.examples import examples_of
from traceforge.cli.export import export
from traceforge.cli.forecast import forecast
from traceforge.cli.history import history
from traceforge.cli.info import info
from traceforge.cli.ingest import ingest
from traceforge.cli.mcp import mcp
from traceforge.cli.merge import merge
from traceforge.cli.pack import pack, unpack
from traceforge.cli.replay import replay
from traceforge.cli.report import report
from traceforge.cli.schema import schema
from traceforge.cli.sql import sql
from traceforge.cli.synth import synth
from traceforge.cli.thresholds import thresholds
from traceforge.cli.top import top

app = typer.Typer(
    name="traceforge",
    help="Why a distributed training job scales badly: the cause, its cost and what would help, from the traces "
    "already on disk. Offline.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    report,
    top,
    ingest,
    compare,
    check,
    doctor,
    info,
    sql,
    replay,
    forecast,
    merge,
    pack,
    unpack,
    demo,
    synth,
    thresholds,
    schema,
    mcp,
):
    app.command(epilog=examples_of(command.__name__))(audible(command))
app.add_typer(export, name="export")
app.add_typer(history, name="history")


def _print_version(asked: bool) -> None:
    if asked:
        from traceforge.version import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _global_options(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    """Options of the program itself; `version` acts in its callback."""
