"""The answer first: verdict in words, what it costs and how sure that is, the next step, and what else was found.

Reads attribute.verdict, finding and evidence. A run without a verdict gets one that says why nothing can be known.
"""

from collections.abc import Sequence

from traceforge.report.blocks import Block, Brief, Briefs, Missing, Section, Tile, VerdictPanel
from traceforge.report.context import Context
from traceforge.report.cost import cost_tiles
from traceforge.report.diagnosis import Finding, anchor, moment_link
from traceforge.report.formatting import change, duration, percent
from traceforge.report.machine_readable import MOST_ENTRIES, share, whole
from traceforge.report.missing_data import missing
from traceforge.report.plugin import Plugin

_MOST_BRIEFS = 3
_MOST_REASONS = 3


def _build(context: Context) -> Section | Missing:
    verdict, leading = context.diagnosis.verdict, context.diagnosis.leading
    if verdict is None:
        absent = missing("The analysis gave no verdict", context)
        panel = VerdictPanel("cannot_be_known", "Nothing can be said about this run", absent.why, "", absent.how)
        return Section([panel])
    panel = VerdictPanel(
        state=verdict.state,
        headline=verdict.headline,
        explanation=verdict.explanation,
        confidence=verdict.shown_confidence,
        next_step=verdict.next_step,
        tiles=_finding_tiles(leading, context) if leading else _job_tiles(context),
        evidence_for=leading.evidence_for[:_MOST_REASONS] if leading else (),
        evidence_against=leading.evidence_against[:_MOST_REASONS] if leading else (),
        further=anchor(leading) if leading else "",
        moment=moment_link(leading) if leading else "",
        queries=["verdict", "findings", "evidence", "cost"] if leading else ["verdict", "pace"],
    )
    return Section([panel, *_briefs(context)])


def _finding_tiles(finding: Finding, context: Context) -> list[Tile]:
    tiles = [Tile(duration(finding.delay_ns), "Lost per iteration", _interval(finding))]
    if context.job.mean_ns:
        of_mean = percent(finding.delay_ns / context.job.mean_ns)
        tiles.append(Tile(of_mean, "Of a mean iteration", f"which takes {duration(context.job.mean_ns)}"))
    if cost := context.costs.get(finding.finding_id):
        tiles += cost_tiles(cost, context.price)
    if finding.gain_if_fixed is not None:
        tiles.append(
            Tile(
                change(1 + finding.gain_if_fixed),
                "Throughput without it",
                "in replay, this cause alone; a ceiling",
            )
        )
    return tiles


def _interval(finding: Finding) -> str:
    return finding.cost.partition("(")[2].rstrip(")")


def _job_tiles(context: Context) -> list[Tile]:
    pace = context.rows("pace")[0]
    if pace["mean_ns"] is None:
        return []
    tiles = [Tile(duration(pace["mean_ns"]), "A mean iteration", f"over {pace['iterations']} of them")]
    if pace["variation"] is not None:
        tiles.append(Tile(percent(pace["variation"]), "Variation between iterations", "standard deviation over mean"))
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
    title = f"Also found, {more} more below" if more else "Also found"
    return [Briefs(title, shown, ["findings"])]


def _summarise(context: Context) -> dict[str, object]:
    verdict, findings = context.diagnosis.verdict, context.diagnosis.findings[:MOST_ENTRIES]
    parts = ("kind", "headline", "confidence", "next_step")
    return {
        "verdict": {name: getattr(verdict, name) for name in parts} if verdict else None,
        "findings": [_entry(finding) for finding in findings],
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
