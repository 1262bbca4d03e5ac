"""The answer first: verdict, where and when, what bounds the job, what it costs, how sure, what to do next.

Reads attribute.verdict, finding, finding_difference and bound. A run without a verdict gets one that says why nothing
can be known.
"""

from collections.abc import Sequence

from traceforge.report.answer_blocks import Advice, VerdictPanel
from traceforge.report.blocks import Block, Brief, Briefs, Missing, Section, Tile, Tiles
from traceforge.report.comparison_lead import against_baseline
from traceforge.report.context import Context, Row
from traceforge.report.cost import cost_tiles
from traceforge.report.device_tools import tools_of
from traceforge.report.diagnosis import Finding, Verdict, anchor, moment_link
from traceforge.report.formatting import change, clean, duration, duration_range, percent, plural, probability, span
from traceforge.report.machine_readable import MOST_ENTRIES, share, whole
from traceforge.report.missing_data import missing
from traceforge.report.next_steps import steps
from traceforge.report.other_runs import other_runs_briefs, summarised
from traceforge.report.plugin import Plugin
from traceforge.thresholds.attribute import SPREAD_SHARE
from traceforge.units import times

_MOST_BRIEFS = 3
_NAME = 60
_OPENING = 60
_WHERE = "Where the time goes:"
_MORE_WORK = ("more_work", "new_operation")
_MISMATCHES = frozenset({"differs", "missing", "extra", "size", "order", "unreceived", "unsent"})
_LABELS = {
    "hang": "Hang",
    "one_rank": "One rank",
    "problems": "Problems in the logs",
    "mismatch": "Calls do not match",
    "finding": "Finding",
    "small_finding": "Small finding",
    "nothing_significant": "Nothing significant",
    "unsure": "No certain culprit",
    "spread": "No single culprit",
    "unbalanced": "Uneven pipeline",
    "common": "All ranks alike",
    "cannot_be_known": "Cannot be known",
}


def _build(context: Context) -> Section | Missing:
    verdict, leading = context.diagnosis.verdict, context.diagnosis.leading
    if verdict is None:
        absent = missing("The analysis gave no verdict", context)
        state, headline = "cannot_be_known", "Nothing can be said about this run"
        panel = VerdictPanel(state, _LABELS[state], headline, absent.why, [Advice(absent.how)])
        return Section([panel])
    operation = _operation(context, leading) if leading else None
    bound = bound_told(verdict, context)
    state = _colour(verdict, leading)
    queries = ["verdict", "pace", *(["findings", "operations_of_findings", "bound", "cost"] if leading else [])]
    panel = VerdictPanel(
        state=state,
        label=_label(state, context),
        headline=verdict.headline,
        explanation=_without(verdict.explanation, bound),
        steps=_steps(verdict, leading, operation, context),
        places=_places(leading, operation, context) if leading else (),
        bound=bound,
        since=against_baseline(context.comparison, verdict.headline),
        further=anchor(leading) if leading else "",
        moment=moment_link(leading) if leading else "",
        is_comparable=leading is not None and (leading.affected_iterations or 0) < (leading.iterations or 0),
    )
    tiles = _finding_tiles(leading, verdict, context) if leading else _job_tiles(context)
    shown: list[Block] = [panel, *([Tiles(tiles, queries)] if tiles else []), *_briefs(context)]
    shown += other_runs_briefs(context)
    return Section(shown)


def _colour(verdict: Verdict, leading: Finding | None) -> str:
    """The state; a finding that costs little is told apart, as it is not what the run loses most by."""
    is_small = leading is not None and leading.share is not None and leading.share < SPREAD_SHARE
    return "small_finding" if is_small else verdict.state


def _label(state: str, context: Context) -> str:
    """The state in a few words; a run in which nothing stands out may be slower all the same, than its baseline."""
    comparison = context.comparison
    if state == "nothing_significant" and comparison is not None and comparison.iteration.is_significant:
        word = "Slower" if comparison.iteration.difference_ns > 0 else "Faster"
        return f"{word} than the baseline"
    return _LABELS.get(_kind(state, context), "")


def _kind(state: str, context: Context) -> str:
    """The state, or what the run is of which nothing else can be said."""
    if state == "finding" and not context.diagnosis.findings:
        return "hang"
    if state == "unsure":
        return _unsure(context)
    if state != "cannot_be_known":
        return state
    if not context.job.ranks and any(row["severity"] == "problem" for row in context.rows("sections/fabric_findings")):
        return "problems"
    if not context.job.ranks and shows_mismatch(context):
        return "mismatch"
    is_known = any(row["bound"] != "unexplained" for row in context.rows("bound"))
    return "one_rank" if len(context.job.ranks) == 1 and is_known else state


def shows_mismatch(context: Context) -> bool:
    """Whether execution traces show collectives or messages that do not match."""
    return any(
        row["status"] in _MISMATCHES
        for name in ("sequences", "messages")
        for row in context.rows(f"sections/execution_traces_{name}")
    )


def _unsure(context: Context) -> str:
    """Why nobody is named although much may be lost: it is not certain, stages are uneven, or all lose some."""
    verdict = context.diagnosis.verdict
    if verdict is not None and verdict.is_common:
        return "common"
    if verdict is not None and verdict.is_unbalanced:
        return "unbalanced"
    return "unsure" if verdict is None or verdict.confidence == "low" else "spread"


def _operation(context: Context, finding: Finding) -> Row | None:
    rows = context.rows("operations_of_findings")
    return next((row for row in rows if row["finding_id"] == finding.finding_id), None)


def _places(finding: Finding, operation: Row | None, context: Context) -> list[str]:
    """Where, when, in which operation, how much else: a few words each."""
    places = [f"on {finding.host}"] if finding.host else []
    if finding.first_iteration is not None and finding.last_iteration is not None:
        noun = "iteration" if finding.first_iteration == finding.last_iteration else "iterations"
        when = f"{noun} {span(finding.first_iteration, finding.last_iteration)}"
        if finding.affected_iterations is not None and finding.iterations:
            is_all = finding.affected_iterations == finding.iterations
            part = _of_all(finding.iterations) if is_all else f"{finding.affected_iterations} of {finding.iterations}"
            when += f", {part} judged"
        places.append(when)
    if operation is not None:
        places.append(_work(operation))
    if further := len(context.diagnosis.further):
        places.append(f"{plural(further + 1, 'finding')}")
    return places


def _of_all(count: int) -> str:
    """All of a number of things, such as `both` or `all 3`."""
    return {1: "the only one", 2: "both"}.get(count, f"all {count}")


def _work(operation: Row) -> str:
    name = f"`{clean(operation['name'], _NAME).replace('`', '')}`"
    if operation["kind"] in _MORE_WORK:
        return f"{name} {times(operation['calls'])} an iteration, peers {operation['peer_calls'] or 0:.0f}"
    return (
        f"{name} {duration(operation['call_duration_ns'])} a call, peers {duration(operation['peer_call_duration_ns'])}"
    )


def bound_told(verdict: Verdict, context: Context) -> str:
    """What bounds the job, where neither the headline nor another answer of the explanation says it."""
    sentence = next((clean(row["sentence"], 600) for row in context.rows("bound")), "")
    is_answered = _WHERE in verdict.explanation and sentence not in verdict.explanation
    return "" if is_answered or verdict.headline[:_OPENING] in sentence else sentence


def _without(explanation: str, bound: str) -> str:
    """The explanation without what stands below it as a paragraph of its own."""
    if not bound or bound not in explanation:
        return explanation
    return " ".join(explanation.replace(bound, "").replace(_WHERE, "").split())


def _steps(verdict: Verdict, leading: Finding | None, operation: Row | None, context: Context) -> list[Advice]:
    devices = [cost.has_devices for cost in context.costs.values()]
    return steps(
        verdict.next_step,
        leading,
        tools=tools_of(row["device"] for row in context.rows("devices")),
        has_devices=any(devices),
        is_other_work=operation is not None and operation["kind"] in _MORE_WORK,
        command=context.command,
        is_one_host=context.job.is_one_host,
        hang=next((row["kind"] for row in context.rows("sections/hang") if row["next_step"] == verdict.next_step), ""),
    )


def _finding_tiles(finding: Finding, verdict: Verdict, context: Context) -> list[Tile]:
    interval = duration_range(finding.low_ns, finding.high_ns)
    detail = f"95 % interval {interval}" if interval else "no interval: fewer than three iterations"
    detail = "; ".join(filter(None, [detail, finding.part_of(context.pace_ns)]))
    tiles = [Tile(duration(finding.delay_ns), "Recoverable per iteration", detail)]
    if cost := context.costs.get(finding.finding_id):
        tiles += cost_tiles(cost, context.price)
    if finding.gain_if_fixed is not None:
        tiles.append(Tile(change(1 + finding.gain_if_fixed), "Throughput if fixed", _all_fixed(finding, context)))
    if (baseline := _baseline_tile(context)) is not None:
        tiles.append(baseline)
    if verdict.shown_confidence:
        tiles.append(Tile(verdict.shown_confidence, "Confidence", _how_sure(finding)))
    return tiles


def _how_sure(finding: Finding) -> str:
    parts = []
    if finding.affected_iterations is not None and finding.iterations:
        noun = "iteration" if finding.iterations == 1 else "iterations"
        of_all = "the one" if finding.iterations == 1 else f"{finding.affected_iterations} of {finding.iterations}"
        parts.append(f"stands out in {of_all} {noun}{' judged' if finding.iterations == 1 else ''}")
    if finding.p_value is not None and (finding.iterations or 0) > 1:
        parts.append(f"chance explanation: {probability(finding.p_value)}")
    parts += ["some evidence speaks against it"] if finding.evidence_against else []
    return "; ".join(parts)


def _all_fixed(finding: Finding, context: Context) -> str:
    """What all findings together would gain, beside what this one does."""
    known = [one for one in context.diagnosis.findings if one.is_significant]
    if len(known) < 2 or finding.gain_if_all_fixed is None:
        return "by replay without it; a ceiling"
    return f"{change(1 + finding.gain_if_all_fixed)} with {_of_all(len(known))} findings fixed; by replay, ceilings"


def _baseline_tile(context: Context) -> Tile | None:
    if context.comparison is None:
        return None
    found = context.comparison.iteration
    if not found.before_ns:
        return None
    before_ns, after_ns = context.comparison.pace_ns or (found.before_ns, found.after_ns)
    note = f"{duration(before_ns)} before, {duration(after_ns)} now"
    note += "" if context.comparison.pace_ns is None else ", from the start of one to the next"
    note += "" if found.is_significant else "; within the scatter"
    return Tile(f"{change(after_ns / before_ns)}", "Iteration against baseline", note)


def _job_tiles(context: Context) -> list[Tile]:
    pace = context.rows("pace")[0]
    if pace["mean_ns"] is None:
        return []
    tiles = [Tile(duration(pace["mean_ns"]), "A mean iteration", f"over {plural(pace['iterations'], 'iteration')}")]
    verdict = context.diagnosis.verdict
    if verdict is not None and verdict.delay_share is not None and len(context.job.ranks) > 1:
        label = "Delay in an iteration"
        tiles.append(Tile(percent(verdict.delay_share), label, "time above the run's own reference, whoever owns it"))
    if pace["variation"] is not None:
        tiles.append(Tile(percent(pace["variation"]), "Variation between iterations", "standard deviation over mean"))
    if (baseline := _baseline_tile(context)) is not None:
        tiles.append(baseline)
    if verdict is not None and verdict.shown_confidence:
        what = verdict.sure_of or "that no rank and no cause stands out"
        tiles.append(Tile(verdict.shown_confidence, "Confidence", what))
    return tiles


def _briefs(context: Context) -> Sequence[Block]:
    """What else was found beyond a hint, in one line each; the evidence stands with the failure modes."""
    further = context.diagnosis.further
    if not further:
        return []
    shown = [
        Brief(finding.summary, finding.cost, finding.confidence, finding.mode, anchor(finding), moment_link(finding))
        for finding in further[:_MOST_BRIEFS]
    ]
    more = len(further) - len(shown)
    title = f"Also found, {more} more in Findings" if more else "Also found"
    return [Briefs(title, shown, ["findings"])]


def _summarise(context: Context) -> dict[str, object]:
    verdict, findings = context.diagnosis.verdict, context.diagnosis.findings[:MOST_ENTRIES]
    parts = ("kind", "headline", "confidence", "next_step")
    return {
        "verdict": {name: getattr(verdict, name) for name in parts} if verdict else None,
        "findings": [_entry(finding) for finding in findings],
        "other_runs": summarised(context),
    }


def _entry(finding: Finding) -> dict[str, object]:
    return {
        "mode": finding.mode,
        "cause": finding.cause,
        "subject_kind": finding.subject_kind,
        "subject": finding.subject,
        "delay_ns_per_iteration": whole(finding.delay_ns),
        "delay_low_ns": whole(finding.low_ns),
        "delay_high_ns": whole(finding.high_ns),
        "share": share(finding.share),
        "confidence": finding.confidence,
        "gain_if_fixed": share(finding.gain_if_fixed),
        "first_iteration": finding.first_iteration,
        "last_iteration": finding.last_iteration,
        "pattern": finding.pattern,
    }


SECTION = Plugin(10, "Verdict", "Verdict", _build, _summarise)
