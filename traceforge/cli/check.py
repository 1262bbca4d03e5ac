"""`traceforge check (DIR|DB) --max NAME=VALUE`: exit code 10 where a run exceeds a limit."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.console import note, print_unwritten, printable
from traceforge.cli.files_used import note_other_runs
from traceforge.cli.inputs import TARGET_HELP, opened, print_json
from traceforge.errors import InputUnusableError, UsageError
from traceforge.outputs import check_outputs, write_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceforge.check import LimitResult, MetricLimit

EXCEEDED = 10
_LARGEST_SUMMARY_BYTES = 50_000_000


def check(
    target: Annotated[Path | None, typer.Argument(help=f"{TARGET_HELP} --list needs none.")] = None,
    maximum: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            metavar="LIMIT",
            help="Limit such as iteration_ms=130, wait_share=20% or finding_confidence=low; repeat.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(help="Summary of an earlier run (`report --json FILE`), or its database: limits come from it."),
    ] = None,
    tolerance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHARE", help="Allowed loss against the baseline: 5% (the default), or NAME=10%, which adds NAME."
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Run to check, where the database holds several.")] = None,
    fail_within_noise: Annotated[
        bool, typer.Option("--fail-within-noise", help="Treat a breach within noise as exceeded.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Check although the baseline had another number of ranks.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Also write JUnit XML.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write a markdown table.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON in the place of lines.")] = False,
    list_metrics: Annotated[bool, typer.Option("--list", help="List the metrics with what they mean.")] = False,
) -> None:
    """Check a run against limits. Exit code 0: all kept; 10: one exceeded; 3: one cannot be measured.

    A value above a limit that its 95 % interval (over iterations) still includes is reported as `within noise` and
    passes, unless --fail-within-noise: a gate that fails by chance is soon ignored. Against a baseline, times may grow
    by the tolerance in per cent, shares by as many points, confidence and counts not at all. A baseline of another
    number of ranks is refused, as `compare` refuses it.
    """
    from traceforge import api
    from traceforge.check import refuse_unlike

    if list_metrics:
        _print_metrics(as_json=as_json)
        return
    check_outputs([junit, markdown], [baseline])
    earlier = None if baseline is None else _summary_of(baseline)
    limits = _limits(maximum or [], earlier, tolerance or [], where=str(baseline))
    with opened(_named(target)) as store:
        run_id = api.run_id(store, run)
        note_other_runs(store, run_id, run)
        if earlier is not None and not force:
            refuse_unlike(store, run_id, earlier, where=str(baseline))
        results = api.check(store, limits, run=run)
        name = str(store.value("SELECT run_name FROM meta.run WHERE run_id = ?", [run_id]))
    code = _exit_code(results, fail_within_noise=fail_within_noise)
    _write(results, name, junit, markdown)
    raise typer.Exit(_answer(results, name, code, as_json=as_json))


def _answer(results: "Sequence[LimitResult]", name: str, code: int, *, as_json: bool) -> int:
    """Print the answer; the exit code, which stands even if nobody reads the lines any more."""
    try:
        _print(results, name, code, as_json=as_json)
    except BrokenPipeError:
        return code
    except OSError as error:
        print_unwritten(error)
        return code or InputUnusableError.exit_code
    return code


def _write(results: "Sequence[LimitResult]", name: str, junit: Path | None, markdown: Path | None) -> None:
    from traceforge.check.documents import junit as junit_text
    from traceforge.check.documents import markdown as markdown_text

    if junit is not None:
        write_text(junit, junit_text(results, name))
    if markdown is not None:
        write_text(markdown, markdown_text(results, name))


def _limits(
    maximum: list[str], earlier: "Mapping[str, object] | None", tolerance: list[str], *, where: str
) -> "Sequence[MetricLimit]":
    from traceforge.check import against_baseline, parse_limit

    limits = [parse_limit(text) for text in maximum]
    if earlier is not None:
        limits += against_baseline(earlier, tolerance, where=where)
    elif tolerance:
        raise UsageError("--tolerance without --baseline", hint="name the summary of an earlier run with --baseline")
    if not limits:
        raise UsageError("no limit given", hint="give --max NAME=VALUE or --baseline SUMMARY.json; --list shows names")
    return limits


def _summary_of(path: Path) -> "Mapping[str, object]":
    from traceforge import api
    from traceforge.store.folder import is_database

    if is_database(path):
        with opened(path) as store:
            return api.summary(store)
    return _summary(path)


def _summary(path: Path) -> "Mapping[str, object]":
    hint = "write it with `traceforge report DB --json SUMMARY.json`"
    try:
        if path.stat().st_size > _LARGEST_SUMMARY_BYTES:
            raise InputUnusableError("too large for a summary", where=str(path), hint=hint)
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputUnusableError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise InputUnusableError(f"not a JSON document: {error}", where=str(path), hint=hint) from error
    if not isinstance(document, dict):
        raise InputUnusableError("not a summary of a report", where=str(path), hint=hint)
    return document


def _named(target: Path | None) -> Path:
    if target is None:
        raise UsageError("nothing to check", hint="name traces or a database; --list alone shows the metrics")
    return target


def _exit_code(results: "Sequence[LimitResult]", *, fail_within_noise: bool) -> int:
    from traceforge.check import LimitOutcome

    outcomes = {result.outcome for result in results}
    if LimitOutcome.exceeded in outcomes or (fail_within_noise and LimitOutcome.within_noise in outcomes):
        return EXCEEDED
    return InputUnusableError.exit_code if LimitOutcome.not_measured in outcomes else 0


def _print(results: "Sequence[LimitResult]", name: str, code: int, *, as_json: bool) -> None:
    from traceforge.check.documents import sentence

    if as_json:
        print_json({"run": name, "exit_code": code, "limits": [_document(result) for result in results]})
        return
    for result in results:
        print(printable(f"{result.outcome.value + ':':<14}{sentence(result)}"))
    note({0: "all limits kept", EXCEEDED: "limits exceeded"}.get(code, "not everything could be measured"))


def _document(result: "LimitResult") -> "Mapping[str, object]":
    from dataclasses import asdict

    limit = result.limit
    measured = None if result.measured is None else asdict(result.measured)
    return {
        "metric": limit.metric.name,
        "outcome": result.outcome.value,
        "measured": measured,
        "limit": limit.value,
        "margin": result.margin,
        "basis": limit.basis,
    }


def _print_metrics(*, as_json: bool) -> None:
    from traceforge.check import METRICS

    if as_json:
        listed = [{"name": one.name, "about": one.about, "is_compared": one.compared} for one in METRICS.values()]
        print_json({"metrics": listed})
        return
    for metric in METRICS.values():
        print(f"{metric.name:<29}{metric.about}{' *' if metric.compared else ''}")
    note("* compared with a baseline without being named")
