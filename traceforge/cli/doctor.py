"""`traceforge doctor (DIR|DB)`: what these traces can answer, and the setting that records the rest next time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.console import printable
from traceforge.cli.ingest import RankRegex, ShownOptions
from traceforge.cli.inputs import TARGET_HELP, opened, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceforge.doctor import Examination


def doctor(
    target: Annotated[Path, typer.Argument(help=TARGET_HELP)],
    run: Annotated[str | None, typer.Option(help="Run to look at, where the database holds several.")] = None,
    rank_regex: RankRegex = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Show what these traces lack, and the setting that records it.

    Questions are in order of value. What a job does not need (NCCL logs of a gloo job) is left out.
    """
    from traceforge import api

    with opened(target, ShownOptions(run, rank_regex=rank_regex)) as store:
        found = api.doctor(store, run=run)
    if as_json:
        print_json({"checks": [examination.document() for examination in found]})
        return
    print("\n".join(printable(line) for line in doctor_lines(found)))


def doctor_lines(found: "Sequence[Examination]") -> list[str]:
    """What is lacking with its remedy, then what is there, as lines of text."""
    from traceforge.doctor import LACKING, Status

    lacking = [one for one in found if one.status in LACKING]
    there = [one for one in found if one.status is Status.complete]
    needless = [one for one in found if one.status is Status.not_needed]
    lines = []
    if not lacking:
        lines.append("Complete: these traces answer every question.")
    for one in lacking:
        lines += [f"{one.status.upper():<9}{one.check.question}", f"         found: {one.evidence}"]
        lines += [f"         next:  {one.check.remedy}"]
        lines += [f"                {one.check.setting}"] if one.check.setting else []
    if blocked := [one for one in found if one.status is Status.blocked]:
        lines += ["", "Cannot be answered before that is recorded:"]
        lines += [f"  {one.check.question} {one.evidence}" for one in blocked]
    if there:
        lines += ["", "Complete:"] if lines else ["Complete:"]
        lines += [f"  {one.check.question} {one.evidence}" for one in there]
    if needless:
        lines += ["", "Not needed:", *(f"  {one.check.question} {one.evidence}" for one in needless)]
    return lines
