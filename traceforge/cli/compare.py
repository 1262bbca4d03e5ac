"""`traceforge compare A B`: what changed between two runs, and whether it is more than their scatter."""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceforge.cli.console import note, printable
from traceforge.cli.files_used import note_other_runs
from traceforge.cli.inputs import TARGET_HELP, opened, print_json
from traceforge.errors import UsageError

if TYPE_CHECKING:
    from traceforge.compare import Change, Comparison, OperationChange

_LINES = 15
_WIDTH = 100
_MOST_A_FAMILY = 3
_MOST_A_LEVEL = 2
_LETTERS = 21


def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help=f"The baseline. {TARGET_HELP}")],
    after: Annotated[
        Path | None, typer.Argument(metavar="B", help="The run to compare with it; leave out for two runs of A.")
    ] = None,
    run_a: Annotated[str | None, typer.Option("--run-a", help="Run of A, where it holds several.")] = None,
    run_b: Annotated[str | None, typer.Option("--run-b", help="Run of B (or of A), where it holds several.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write every row as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Compare although the numbers of ranks differ.")] = False,
) -> None:
    """Show what changed from run A to run B. Findings, iteration time, phases, causes, collectives, ranks, kernels.

    A change is called significant only if it is more than the scatter between iterations (Welch's t with the variance
    of blocks of neighbouring iterations; Holm over the rows of a table), more than 0.5 % of an iteration, and above
    the clock resolution. What comes and goes shows in the findings of both runs: new, gone, grown. Runs with different
    numbers of ranks are refused.
    """
    from traceforge import api
    from traceforge.report.comparison_text import comparison_document

    if after is None and (run_a is None or run_b is None):
        hint = "give a second database or folder, or name two runs of one with --run-a and --run-b"
        raise UsageError("nothing to compare with", hint=hint)
    with ExitStack() as stack:
        first = stack.enter_context(opened(before))
        same = after is None or after.resolve() == before.resolve()
        second = first if same or after is None else stack.enter_context(opened(after))
        if same and run_a == run_b:
            raise UsageError("A and B are the same run", hint="name two runs of the database with --run-a and --run-b")
        for store, run, option in ((first, run_a, "--run-a"), (second, run_b, "--run-b")):
            note_other_runs(store, api.run_id(store, run), run, option)
        found = api.compare(first, second, run_before=run_a, run_after=run_b, force=force)
    if as_json:
        print_json(comparison_document(found))
        return
    print("\n".join(printable(line) for line in comparison_lines(found)))
    note("every row: --json; in a report: traceforge report B --baseline A")


def comparison_lines(found: "Comparison") -> list[str]:
    """The comparison as at most 15 lines of plain text; how many changes there was no room for is said."""
    from textwrap import wrap

    from traceforge.report import comparison_text as words
    from traceforge.report.formatting import plain, plural

    answer = f"COMPARED with {found.before.run_name}: {words.headline(found)}"
    lines = wrap(answer, _WIDTH, max_lines=3, placeholder=" …")
    lines += _labelled("tail", words.tail(found))
    warned = [line for warning in words.warnings(found)[:2] for line in _labelled("warn", f"not comparable: {warning}")]
    scatter = [line for text in words.paced(found)[:2] for line in _labelled("paced", text)]
    scatter += _labelled("note", words.ONE_RUN_EACH)
    shown, left = _changes(found)
    room = _LINES - len(lines) - len(warned) - len(scatter)
    while sum(map(len, shown)) + bool(left) > room:
        shown, left = shown[:-1], left + 1
    rows = [line for lines_of_one in shown for line in lines_of_one]
    if left:
        rows.append(f"  … and {plural(left, 'more significant change')}")
    return plain([*lines, *(rows or [f"  {words.summary(found)}"]), *warned, *scatter][:_LINES])


def _changes(found: "Comparison") -> tuple[list[list[str]], int]:
    """The lines of each significant change, the most telling first, and how many more there are."""
    from traceforge.report import comparison_text as words
    from traceforge.report.comparison_lead import overlap

    turned = [_labelled("found", words.turned(one)) for one in found.findings if one.turn != "same"]
    families = [turned, _of_level(found, "operation")]
    hidden = overlap(found)
    families += [[_labelled("overlap", hidden, _LETTERS)] if hidden else []]
    families += [[_moved(change) for change in found.of(one, only_significant=True)] for one in words.FAMILY_TITLES]
    most = [_MOST_A_FAMILY] * len(families)
    for level in ("shapes", "kernel", "module"):
        families.append(_of_level(found, level))
        most.append(_MOST_A_LEVEL)
    shown = [lines for rows, count in zip(families, most, strict=True) for lines in rows[:count]]
    return shown, sum(map(len, families)) - len(shown)


def _of_level(found: "Comparison", level: str) -> list[list[str]]:
    """Lines of the work grouped in one way; what came in the place of other work in a line of its own, first."""
    from traceforge.report.replaced_work import is_replaced, kept, replaced

    changes = [one for one in found.work if one.level == level]
    first = [_labelled(level, replaced(changes), _LETTERS)] if is_replaced(changes) else []
    return [*first, *([_worked(one)] for one in kept(changes))]


def _moved(change: "Change") -> list[str]:
    from traceforge.report import comparison_text as words

    lead = f"  {change.family.replace('_', ' ') + ':':<20} {words.subject(change)}: "
    line = lead + words.moved(change)
    return [line if len(line) <= _WIDTH else lead + words.moved(change, with_interval=False)]


def _worked(change: "OperationChange") -> str:
    """An operation, kernel or module that changed; with its arithmetic where there is room."""
    from traceforge.report import comparison_text as words
    from traceforge.report.formatting import clean

    line = f"  {change.level + ':':<20} {clean(change.name, 40)}: {words.worked(change)}"
    longer = line + words.paces(change)
    return longer if len(longer) <= _WIDTH else line


def _labelled(label: str, text: str, letters: int = 7) -> list[str]:
    from textwrap import wrap

    lead = f"  {label + ':':<{letters}}"
    return wrap(lead + text, _WIDTH, subsequent_indent=" " * len(lead), max_lines=2, placeholder=" …")
