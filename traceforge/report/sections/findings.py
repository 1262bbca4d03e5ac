"""The findings beside the verdict's, as cards with the evidence for and against each.

Reads attribute.finding and evidence. Findings of low confidence are hints and are set apart from the others.
"""

from traceforge.report.blocks import Block, Card, Cards, Missing, Note, Paragraph, Plugin, Section, Subheading
from traceforge.report.context import Context
from traceforge.report.diagnosis import Finding
from traceforge.report.words import change, duration, percent, plural

_MOST_CARDS = 8


def _build(context: Context) -> Section | Missing:
    further = context.diagnosis.further
    significant = [finding for finding in further if finding.is_significant]
    hints = [finding for finding in further if not finding.is_significant]
    blocks: list[Block] = []
    if significant:
        blocks += _cards(significant, context)
    else:
        blocks.append(Paragraph(_nothing_further(context)))
    if hints:
        blocks += [Subheading("Hints of low confidence"), *_cards(hints, context)]
    return Section(blocks)


def _nothing_further(context: Context) -> str:
    if context.diagnosis.leading:
        return "Beside the verdict, nothing else stands out of the scatter between iterations."
    if context.diagnosis.verdict is None or context.diagnosis.verdict.kind == "cannot_be_known":
        return "No finding could be made; the panel below says what the data allow."
    return "No failure mode stands out of the scatter between iterations."


def _cards(findings: list[Finding], context: Context) -> list[Block]:
    blocks: list[Block] = [Cards([_card(finding, context) for finding in findings[:_MOST_CARDS]])]
    if len(findings) > _MOST_CARDS:
        rest = findings[_MOST_CARDS:]
        lost = duration(sum(finding.delay_ns for finding in rest))
        blocks.append(Note(f"{plural(len(rest), 'smaller finding')} not shown; together {lost} an iteration."))
    return blocks


def _card(finding: Finding, context: Context) -> Card:
    facts = [("Lost in each iteration", finding.cost)]
    if context.job.mean_ns:
        facts.append(("Of a mean iteration", percent(finding.delay_ns / context.job.mean_ns)))
    if finding.gain_if_fixed is not None:
        facts.append(("Throughput if it were gone", f"at most {change(1 + finding.gain_if_fixed)}"))
    facts.append(("Concerns", finding.who))
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
    )


SECTION = Plugin("Further findings", "Findings", _build)
