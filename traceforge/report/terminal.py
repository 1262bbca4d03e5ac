"""The verdict for the terminal. In: a context. Out: at most 15 lines of plain text of at most 100 characters.

No markup, no colour, no control characters: names were cleaned on the way in. Square brackets may occur in names;
whoever prints the lines must not take them for markup.
"""

from textwrap import wrap

from traceforge.report.comparison_lead import against_baseline
from traceforge.report.context import Context
from traceforge.report.formatting import duration, percent, plain, plural
from traceforge.report.missing_data import missing
from traceforge.report.other_runs import agreement, read_other_runs

_WIDTH = 100
_LINES = 15
_MOST_FURTHER = 2
_MOST_EXPLAINED = 5
_LEAST_EXPLAINED = 3


def verdict_lines(context: Context) -> list[str]:
    """The verdict, its cost, what to do next, what else was found, what other runs say, and how far to trust it."""
    verdict = context.diagnosis.verdict
    if verdict is None:
        absent = missing("The analysis gave no verdict", context)
        return plain(["VERDICT: nothing can be said about this run", *_indented(absent.why, 3), *_next(absent.how)])
    confidence = f" (confidence {verdict.confidence_said})" if verdict.confidence_said else ""
    headline = wrap(
        f"VERDICT{confidence}: {verdict.headline}", _WIDTH, max_lines=5, placeholder=" …", break_on_hyphens=False
    )
    after = [*_cost(context), *_next(verdict.next_step)]
    trust = [*_labelled("runs", agreement(read_other_runs(context)), 3), *_labelled("trust", _trust(context), 3)]
    headline += _indented(against_baseline(context.comparison, verdict.headline), 4)
    room = _LINES - len(headline) - len(after) - len(trust)
    least = len(_indented(verdict.explanation, _LEAST_EXPLAINED))
    further = _further(context)[: max(0, room - least)]
    explanation = _indented(verdict.explanation, max(1, min(_MOST_EXPLAINED, room - len(further))))
    return plain([*headline, *explanation, *after, *further, *trust][:_LINES])


def _further(context: Context) -> list[str]:
    shown = context.diagnosis.further[:_MOST_FURTHER]
    return [line for finding in shown for line in _labelled("also", finding.summary, 2)]


def _cost(context: Context) -> list[str]:
    leading = context.diagnosis.leading
    if leading is None:
        return []
    parts = filter(None, [f"{leading.cost} per iteration", leading.part_of(context.pace_ns)])
    return _labelled("costs", ", ".join(parts), 1)


def _trust(context: Context) -> str:
    trust = context.trust
    parts = []
    if trust.coverage.ranks and not trust.coverage.is_whole:
        parts.append(f"{trust.coverage.of_all} ranks recorded")
    if trust.coverage.truncated_ranks:
        parts.append(f"{plural(trust.coverage.truncated_ranks, 'file')} truncated")
    if trust.coverage.is_split is False:
        parts.append("waiting and transfer not told apart")
    if trust.steps_inferred_from:
        parts.append(f"steps inferred from {trust.steps_inferred_from}")
    if trust.unaligned:
        parts.append(f"{plural(len(trust.unaligned), 'clock')} not aligned")
    elif trust.largest_residual_ns is not None and len(trust.clocks) > 1:
        parts.append(f"clocks within {duration(trust.largest_residual_ns)}")
    if trust.matched_share is not None:
        parts.append(f"{percent(trust.matched_share)} of communication matched")
    if trust.complete < trust.collectives:
        parts.append(f"{trust.complete} of {trust.collectives} collectives complete")
    if trust.unexplained is not None:
        parts.append(f"{percent(trust.unexplained)} of the delay unexplained")
    return "; ".join(parts)


def _next(step: str) -> list[str]:
    return _labelled("next", step, 3)


def _labelled(label: str, text: str, most: int) -> list[str]:
    if not text:
        return []
    lead = f"  {label + ':':<7}"
    return wrap(
        lead + text, _WIDTH, subsequent_indent=" " * len(lead), max_lines=most, placeholder=" …", break_on_hyphens=False
    )


def _indented(text: str, most: int) -> list[str]:
    return wrap(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        max_lines=most,
        placeholder=" …",
        break_on_hyphens=False,
    )
