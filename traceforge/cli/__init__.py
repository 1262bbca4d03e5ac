"""The command line: one file a command. In: arguments. Out: data on stdout, everything else on stderr, an exit code.

A command parses, calls `traceforge.api`, prints. Heavy libraries are imported inside the commands that need them, so
that `--help` answers at once. Errors of a user's making are one line and a hint, never a traceback.
"""

import contextlib
import errno
import io
import os
import sys
import traceback

import typer

from traceforge.cli.check import check
from traceforge.cli.compare import compare
from traceforge.cli.console import print_error
from traceforge.cli.demo import demo
from traceforge.cli.doctor import doctor
from traceforge.cli.examples import examples_of
from traceforge.cli.export import export
from traceforge.cli.forecast import forecast
from traceforge.cli.history import history
from traceforge.cli.info import info
from traceforge.cli.ingest import ingest
from traceforge.cli.pack import pack, unpack
from traceforge.cli.process import prepared
from traceforge.cli.replay import replay
from traceforge.cli.report import report
from traceforge.cli.sql import sql
from traceforge.cli.synth import synth
from traceforge.cli.thresholds import thresholds
from traceforge.cli.top import top
from traceforge.errors import InputUnusableError, TraceforgeError

# What the operating system says of it, whether through Python, polars or DuckDB.
_NO_ROOM = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))

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
    pack,
    unpack,
    demo,
    synth,
    thresholds,
):
    app.command(epilog=examples_of(command.__name__))(command)
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


def _flush_quietly(*, is_cut: bool) -> None:
    """Write out what is left; where nobody reads it, drop it without a word."""
    try:
        if not is_cut:
            sys.stdout.flush()
            return
    except BrokenPipeError:
        pass
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the command line; ends the process with one of the exit codes listed in `traceforge.errors`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does, where the encoding lacks a character
    try:
        with prepared():
            app()
    except SystemExit as ending:
        # Libraries end the process with 1 where the reader of our output has gone (`| head`): it has what it wanted.
        is_cut = isinstance(ending.__context__, BrokenPipeError)
        _flush_quietly(is_cut=is_cut)
        sys.exit(0 if is_cut else ending.code)
    except TraceforgeError as error:
        print_error(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _flush_quietly(is_cut=True)
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the last resort: say so and how to report it
        if os.environ.get("TRACEFORGE_DEBUG"):
            traceback.print_exc()
        if any(reason in str(error) for reason in _NO_ROOM):
            hint = "free disk space and run again: files already read are kept"
            print_error(f"the disk is full, or a limit on file sizes is reached: {error}\n\nhint: {hint}")
            sys.exit(InputUnusableError.exit_code)
        if isinstance(error, OSError) and error.strerror:
            place = f"{error.filename}: " if error.filename else ""
            print_error(f"{place}{error.strerror}\n\nhint: choose a place where you may write, or make room there")
            sys.exit(InputUnusableError.exit_code)
        hint = "this is a bug in traceforge; run again with TRACEFORGE_DEBUG=1 and report the output"
        print_error(f"{type(error).__name__}: {error}\n\nhint: {hint}")
        sys.exit(1)
