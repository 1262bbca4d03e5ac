"""`traceforge report (DIR|DB)`: the verdict on the terminal, and the whole report as one HTML file."""

import json
import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.console import note, print_verdict, printable
from traceforge.cli.files_used import files_used, note_other_runs
from traceforge.cli.ingest import (
    FileMemory,
    FileSeconds,
    Jobs,
    LineRates,
    Peaks,
    RackPattern,
    Racks,
    RankRegex,
    Reference,
    ShownOptions,
    Strict,
    check_complete,
    limits_of,
)
from traceforge.cli.inputs import TARGET_HELP, opened
from traceforge.outputs import STANDARD_OUTPUT, check_outputs, write_text
from traceforge.replay.reference_rule import ReferenceRule

if TYPE_CHECKING:
    from traceforge.compare import Comparison
    from traceforge.report import Report
    from traceforge.store.database import Store

GpuPrice = Annotated[
    float | None,
    typer.Option(
        "--price",
        "--price-per-gpu-hour",
        min=0,
        metavar="PRICE",
        help="Price of a GPU-hour; losses are then reported in money too.",
    ),
]


def report(
    target: Annotated[Path, typer.Argument(help=TARGET_HELP)],
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file; - for stdout.")] = Path("report.html"),
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Also write the summary as JSON; - for stdout.")
    ] = None,
    md_file: Annotated[Path | None, typer.Option("--md", help="Also write the first screen as Markdown.")] = None,
    embed: Annotated[
        bool, typer.Option("--embed", help="Write a fragment for another page: no head, no scripts, its own style.")
    ] = False,
    price_per_gpu_hour: GpuPrice = None,
    currency: Annotated[str, typer.Option(help="Currency of that price.")] = "USD",
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace the names of hosts, files, users and the job: host-1, path-1 …")
    ] = False,
    run: Annotated[str | None, typer.Option(help="Run to report, where the database holds several.")] = None,
    jobs: Jobs = None,
    rank_regex: RankRegex = None,
    reference: Reference = None,
    peak: Peaks = None,
    line_rate: LineRates = None,
    racks: Racks = None,
    rack_pattern: RackPattern = None,
    file_seconds: FileSeconds = None,
    file_memory_mib: FileMemory = None,
    strict: Strict = False,
    baseline: Annotated[
        Path | None, typer.Option(help="Earlier run (folder or database): adds a section on what changed since.")
    ] = None,
    baseline_run: Annotated[str | None, typer.Option(help="Run of the baseline, where it holds several.")] = None,
) -> None:
    """Explain why the job scales badly, its cost and what helps."""
    from traceforge import api
    from traceforge.align.stated_racks import parsed_racks
    from traceforge.operation.stated_rates import parsed_rates
    from traceforge.report.cost import Price

    check_outputs([output, json_file, md_file])
    limits, rates = limits_of(file_seconds, file_memory_mib), parsed_rates(peak or (), line_rate or ())
    stated = parsed_racks(racks, rack_pattern)
    options = ShownOptions(run, jobs, rank_regex, reference=reference, limits=limits, rates=rates, racks=stated)
    with opened(target, options) as store, ExitStack() as stack:
        comparison = None
        if baseline is not None:
            of_baseline = replace(options, run=None, jobs=None, rank_regex=None)
            is_same = baseline.resolve() == target.resolve()
            earlier = store if is_same else stack.enter_context(opened(baseline, of_baseline))
            comparison = _compared(earlier, store, baseline_run, run)
        said = {"--peak": peak, "--line-rate": line_rate, **_texts(racks, rack_pattern)}
        command = _command(target, baseline, reference, said, redact=redact)
        price = None if price_per_gpu_hour is None else Price(price_per_gpu_hour, currency)
        made = api.report(
            store, run=run, command=command, baseline=comparison, price=price, redact=redact, as_fragment=embed
        )
        check_complete(store, api.run_id(store, run), strict=False)
        _write(made, output, json_file, md_file)
        if STANDARD_OUTPUT not in (output, json_file, md_file):
            _say_files(store, api.run_id(store, run))
            print_verdict(made.verdict_lines, made.verdict_state)
        _note_page(made, output)
        check_complete_strictly(store, api.run_id(store, run), strict=strict)


def _compared(earlier: "Store", store: "Store", baseline_run: str | None, run: str | None) -> "Comparison":
    from traceforge import api

    baseline_id = api.run_id(earlier, baseline_run)
    note_other_runs(earlier, baseline_id, baseline_run, "--baseline-run", lead="the baseline is")
    return api.compare(earlier, store, run_before=baseline_run, run_after=run)


def _say_files(store: "Store", run_id: int) -> None:
    for line in files_used(store, run_id):
        print(printable(line))


def _texts(racks: Path | None, pattern: str | None) -> dict[str, list[str] | None]:
    """What was stated of racks, by option."""
    file = None if racks is None else [_shown(racks)]
    return {"--racks": file, "--rack-pattern": None if pattern is None else [pattern]}


def _write(made: "Report", output: Path, json_file: Path | None, md_file: Path | None) -> None:
    write_text(output, made.html)
    if md_file is not None:
        write_text(md_file, made.markdown)
    if json_file is not None:
        write_text(json_file, json.dumps(made.summary, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


def _note_page(made: "Report", output: Path) -> None:
    place = "standard output" if output == STANDARD_OUTPUT else output
    note(f"report: {place} ({len(made.html.encode()) / 1e6:.1f} MB)")


def _command(
    target: Path,
    baseline: Path | None,
    reference: ReferenceRule | None,
    stated: Mapping[str, list[str] | None],
    *,
    redact: bool,
) -> str:
    """The command that makes the same report, for its appendix."""
    if redact:
        return "traceforge report PATH --redact"
    command = f"traceforge report {shlex.quote(_shown(target))}"
    if baseline is not None:
        command += f" --baseline {shlex.quote(_shown(baseline))}"
    for option, values in stated.items():
        command += "".join(f" {option} {shlex.quote(value)}" for value in values or ())
    return command if reference is None else f"{command} --reference {reference.value}"


def check_complete_strictly(store: "Store", run_id: int, *, strict: bool) -> None:
    """Under `--strict`, fail after the report is written if data are partial."""
    if strict:
        check_complete(store, run_id, strict=True)


def _shown(target: Path) -> str:
    # An absolute path says more about the machine than the reader of a report needs.
    return target.name if target.is_absolute() else str(target)
