"""`traceforge history`: many runs in one file; who is guilty again, what got slower, what it costs."""

import json
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.check import EXCEEDED
from traceforge.cli.command import audible
from traceforge.cli.console import note, printable
from traceforge.cli.examples import examples_of
from traceforge.cli.inputs import TARGET_HELP, opened, print_json
from traceforge.errors import InputUnusableError, UsageError
from traceforge.outputs import check_outputs, write_text

if TYPE_CHECKING:
    from traceforge.history.fleet import Fleet
    from traceforge.history.summary import Said, Summary

history = typer.Typer(help="Keep many runs: trends, hosts that are guilty again.", no_args_is_help=True)
File = Annotated[Path, typer.Argument(metavar="HISTORY", help="File made by `history add`.")]
Job = Annotated[str | None, typer.Option(metavar="NAME", help="Only this job.")]


@history.callback()
def _about() -> None:
    """Keep many runs: trends, hosts that are guilty again."""


@history.command(epilog=examples_of("history add"))
@audible
def add(
    file: Annotated[Path, typer.Argument(metavar="HISTORY", help="File to add to; made where there is none.")],
    targets: Annotated[list[Path], typer.Argument(metavar="RUN", help=TARGET_HELP)],
    run: Annotated[
        str, typer.Option(metavar="PATTERN", help="Runs to take of databases that hold several, such as 'night*'.")
    ] = "*",
    job: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the job: its runs are compared. Else the run's name.")
    ] = None,
    job_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Execution: traces of one execution count as one job when hosts are judged."),
    ] = None,
    commit: Annotated[str | None, typer.Option(metavar="ID", help="Version of the code that ran.")] = None,
    hours: Annotated[float | None, typer.Option(min=0, help="How long the job ran, for GPU-hours in all.")] = None,
) -> None:
    """Add a summary of runs.

    Adding a run again replaces it; several processes may add at once.
    """
    from traceforge.history.addition import add_summaries
    from traceforge.history.summary import Said

    said = Said(time.time_ns(), job, job_id, commit, hours)
    for target in targets:
        summaries = _summaries(target, run, said)
        replaced = add_summaries(file, summaries)
        again = f", {replaced} of them again" if replaced else ""
        note(f"{target}: {len(summaries)} run{'s' if len(summaries) != 1 else ''} added to {file}{again}")


def _summaries(target: Path, pattern: str, said: "Said") -> "list[Summary]":
    from traceforge.history.summary import summarise

    with opened(target) as store:
        runs = store.rows("SELECT run_id, run_name FROM meta.run ORDER BY run_id")
        chosen = [run_id for run_id, name in runs if fnmatchcase(name, pattern)]
        if not chosen:
            known = ", ".join(name for _, name in runs)
            raise UsageError(f"no run matches `{pattern}`", where=str(target), hint=f"runs: {known or 'none'}")
        return [summarise(store, run_id, said) for run_id in chosen]


@history.command(epilog=examples_of("history report"))
@audible
def report(
    file: File,
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.")] = Path("fleet.html"),
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all as JSON; - for stdout.")] = None,
    md_file: Annotated[Path | None, typer.Option("--md", help="Also write the first screen as Markdown.")] = None,
    job: Job = None,
    price: Annotated[
        float | None, typer.Option("--price", "--price-per-gpu-hour", min=0, help="Price of a GPU-hour.")
    ] = None,
    currency: Annotated[str, typer.Option(help="Currency of that price.")] = "USD",
) -> None:
    """Write a page over all runs.

    Trends with lasting changes, hosts and NICs guilty too often, lost GPU-hours, verdicts.
    """
    from traceforge.history.document import fleet_document
    from traceforge.history.fleet_text import fleet_lines
    from traceforge.history.page import fleet_page
    from traceforge.report.cost import Price
    from traceforge.report.formatting import plain

    check_outputs([output, json_file, md_file])
    fleet = _fleet(file, job)
    html, markdown = fleet_page(fleet, job or file.stem, None if price is None else Price(price, currency))
    write_text(output, html)
    if md_file is not None:
        write_text(md_file, markdown)
    if str(json_file) == "-":
        print_json(fleet_document(fleet))
    else:
        if json_file is not None:
            text = json.dumps({"schema_version": 1, **fleet_document(fleet)}, indent=2, allow_nan=False)
            write_text(json_file, text + "\n")
        print("\n".join(printable(line) for line in plain(fleet_lines(fleet))))
    note(f"report: {output} ({len(html.encode()) / 1e6:.1f} MB)")


@history.command(epilog=examples_of("history check"))
@audible
def check(
    file: File,
    job: Job = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 3 where any series has too few runs to be judged.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Fail where runs got slower for good.

    Ends with 10 where a change for the worse became certain in the last runs, or a host or NIC is accused in more jobs
    than chance allows; with 3 where no series has runs enough to be judged.
    """
    from traceforge.history.document import fleet_document
    from traceforge.history.fleet_text import fleet_lines
    from traceforge.report.formatting import plain

    fleet = _fleet(file, job)
    judged = [series.is_judged for series in fleet.series]
    is_exceeded = bool(fleet.named) or any(change.is_recent for _, change in fleet.regressions)
    is_unjudged = not any(judged) or (strict and not all(judged))
    code = EXCEEDED if is_exceeded else InputUnusableError.exit_code if is_unjudged else 0
    if as_json:
        print_json({"exit_code": code, **fleet_document(fleet)})
    else:
        print("\n".join(printable(line) for line in plain(fleet_lines(fleet))))
    note(f"{sum(judged):,} of {len(judged):,} series judged")
    raise typer.Exit(code)


@history.command(epilog=examples_of("history metrics"))
@audible
def metrics(
    file: File,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to replace at once, such as traceforge.prom.")
    ] = None,
    job: Job = None,
) -> None:
    """Write OpenMetrics text.

    For a scraper, or the textfile collector of node_exporter.
    """
    from traceforge.history.openmetrics import openmetrics

    check_outputs([output])
    text = openmetrics(_fleet(file, job))
    if output is None:
        sys.stdout.write(text)
        return
    write_text(output, text)
    note(f"metrics: {output}")


@history.command(epilog=examples_of("history dashboard"))
@audible
def dashboard() -> None:
    """Write a Grafana dashboard over these metrics."""
    from traceforge.history.dashboard import dashboard as made

    sys.stdout.write(json.dumps(made(), indent=2) + "\n")


def _fleet(file: Path, job: str | None) -> "Fleet":
    from traceforge.history.fleet import read_fleet
    from traceforge.history.tables import open_history

    with open_history(file) as found:
        fleet = read_fleet(found, job)
        known = [name for (name,) in found.rows("SELECT DISTINCT job FROM history.run ORDER BY job")]
    if not fleet.runs:
        if job is not None and known:
            raise UsageError(f"there is no job `{job}`", where=str(file), hint=f"jobs: {', '.join(known)}")
        raise InputUnusableError("the history holds no run", where=str(file), hint="`traceforge history add` adds some")
    return fleet
