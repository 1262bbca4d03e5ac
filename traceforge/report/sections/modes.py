"""Failure modes: what was found of each, with the evidence for and against, what was ruled out, what would settle it.

Reads attribute.delay, finding and evidence. Every mode is named, found or not: that nothing stands out is an answer.
"""

from collections.abc import Mapping, Sequence

from traceforge.report.blocks import (
    Block,
    Card,
    Cards,
    Missing,
    Note,
    Section,
    Subheading,
    Table,
    TableColumn,
    TableFigure,
    number,
)
from traceforge.report.context import Context, Row
from traceforge.report.diagnosis import CONFIDENCES, Finding, anchor, moment_link
from traceforge.report.formatting import (
    capital,
    change,
    duration,
    gpu_hours,
    listed,
    lowered,
    mode_name,
    percent,
    plural,
    spaced,
)
from traceforge.report.missing_data import missing
from traceforge.report.palette import MODES
from traceforge.report.plugin import Plugin
from traceforge.thresholds.attribute import SPREAD_SHARE

_MOST_CARDS = 8
_SETTLES = {
    "synchronization_amplification": "Times of the same kernels on two ranks, and what each was given to do.",
    "fabric_contention": "Logs of NCCL (paths, NICs) and counters of NICs and switches over the same time.",
    "gpu_locality": "Logs of NCCL with GRAPH and NET, or `nvidia-smi topo -m` of every host.",
    "runtime_control_plane": "Python stacks in the trace (`with_stack=True`): what the host does meanwhile.",
    "unexplained": "A longer recording, with stacks and all device activities.",
}


def _build(context: Context) -> Section | Missing:
    rows = {row["mode"]: row for row in context.rows("sections/modes")}
    findings = context.diagnosis.findings
    if not rows and not findings:
        return missing("No failure mode could be judged", context)
    blocks: list[Block] = [_overview(rows, findings)] if rows else []
    shown = list(findings[:_MOST_CARDS])
    for mode in _modes(shown):
        own = [finding for finding in shown if finding.mode == mode]
        cards = Cards([_card(finding, context) for finding in own], ["findings", "evidence", "pace", "cost"])
        blocks += [Subheading(mode_name(mode)), cards]
    if len(findings) > len(shown):
        rest = findings[len(shown) :]
        lost = duration(sum(finding.delay_ns for finding in rest))
        blocks.append(Note(f"{plural(len(rest), 'smaller finding')} not shown; together {lost} an iteration."))
    return Section(blocks, sum(finding.is_significant for finding in findings) or None)


def _modes(findings: list[Finding]) -> list[str]:
    """The modes of these findings, in the order of the first of each."""
    return list(dict.fromkeys(finding.mode for finding in findings))


def _overview(rows: dict[str, Row], findings: Sequence[Finding]) -> TableFigure:
    columns = (
        TableColumn("failure mode", mode_name),
        TableColumn("answer", lambda mode: _answer(mode, findings, mode in rows)),
        number("delay per iteration", lambda mode: duration(rows[mode]["delay_ns"]) if mode in rows else "—"),
        number("of the iteration", lambda mode: percent(rows[mode]["share"]) if mode in rows else "—"),
        TableColumn("mostly", lambda mode: _largest_cause(rows.get(mode))),
        TableColumn("what would settle it", lambda mode: _SETTLES[mode].replace("`", ""), wide=True),
    )
    modes = sorted(MODES, key=lambda mode: -(rows[mode]["delay_ns"] if mode in rows else 0))
    return TableFigure("modes", _caption(findings, rows), Table.of(modes, columns), ["sections/modes", "findings"])


def _answer(mode: str, findings: Sequence[Finding], has_delay: bool) -> str:
    own = [finding for finding in findings if finding.mode == mode]
    for confidence in CONFIDENCES[:-1]:
        if any(finding.confidence == confidence for finding in own):
            return f"found, confidence {confidence}"
    if own:
        return "only a hint"
    if not has_delay:
        return "no delay of this kind"
    return "not attributed" if mode == "unexplained" else "nothing stands out"


def _largest_cause(row: Row | None) -> str:
    cause = spaced(row["largest_cause"]) if row else "—"
    return "—" if row is None or row["largest_cause"] == row["mode"] else cause


def _caption(findings: Sequence[Finding], rows: Mapping[str, Row]) -> str:
    found = _modes([finding for finding in findings if finding.is_significant])
    hit = {one.mode for one in findings}
    # Without any delay of a kind there may have been nothing to compare: that is no all-clear.
    open_modes = [mode for mode in MODES[:-1] if mode in rows and mode not in hit]
    ruled_out = [lowered(mode_name(mode)) for mode in open_modes if rows[mode]["share"] < SPREAD_SHARE]
    spread = [mode for mode in open_modes if rows[mode]["share"] >= SPREAD_SHARE]
    hinted = [lowered(mode_name(mode)) for mode in _modes(list(findings)) if mode not in found]
    if not findings:
        return "No failure mode exceeds the scatter between iterations."
    shown = [lowered(mode_name(mode)) for mode in found]
    text = f"{capital(listed(shown))} found" if found else "No failure mode stands out"
    text += f"; only a hint of {listed(hinted).replace('unexplained', 'unexplained delay')}" if hinted else ""
    text += f". {capital(listed(ruled_out))}: no problem found" if ruled_out else ""
    # Where much is lost, that nobody is named is no all-clear.
    costly = [f"{lowered(mode_name(mode))} ({percent(rows[mode]['share'])})" for mode in spread]
    return f"{text}. {capital(listed(costly))}: no culprit found." if costly else f"{text}."


def _card(finding: Finding, context: Context) -> Card:
    # Only of a sure finding is its cost that of a replay without it.
    facts = [("Recoverable per iteration" if finding.is_significant else "Delay per iteration", finding.cost)]
    if of_pace := finding.part_of(context.pace_ns):
        facts.append(("Of the job's time", of_pace))
    if cost := context.costs.get(finding.finding_id):
        facts.append((cost.label, gpu_hours(cost.gpu_hours.lost)))
    if finding.gain_if_fixed is not None:
        facts.append(("Throughput without it", f"at most {change(1 + finding.gain_if_fixed)}, this cause alone"))
    facts.append(("Seen", finding.period))
    return Card(
        title=finding.summary,
        kicker=finding.what,
        text="",
        confidence=finding.confidence,
        facts=facts,
        evidence_for=finding.evidence_for,
        evidence_against=finding.evidence_against,
        next_step=finding.next_step,
        mode=finding.mode,
        name=anchor(finding),
        moment=moment_link(finding),
    )


SECTION = Plugin(30, "Failure modes", "Findings", _build)
