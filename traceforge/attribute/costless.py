"""Who stands out and costs nothing. In: what stands out, costed by replay. Out: a sentence for a verdict of nothing.

Idea: a rank may lose more time than any negative verdict excludes, while the job ends no earlier without that: others
are as late by themselves, or its iterations overlap. Whoever reads its bar must learn why it is not accused.
"""

from collections.abc import Sequence

from traceforge.attribute.finding import load_costed
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.finding_cost import FindingCost
from traceforge.store.database import Store
from traceforge.units import format_ns


def costless(store: Store, run_id: int) -> str:
    """A sentence on the largest delay of a run that a replay without it does not shorten; empty where there is none."""
    costed = store.once(load_costed, run_id)
    return "" if costed is None else said_of_costless(costed.found, costed.costs)


def said_of_costless(found: Sequence[FindingCandidate], costs: Sequence[FindingCost]) -> str:
    """The same, of candidates with their costs."""
    without = [one for one, cost in zip(found, costs, strict=True) if min(cost.delay.mean_ns, cost.saved.mean_ns) <= 0]
    if not without:
        return ""
    largest = max(without, key=lambda one: one.effect.delay_ns_per_iteration)
    name = largest.subject.said
    size = format_ns(largest.effect.delay_ns_per_iteration)
    return (
        f"{name[0].upper()}{name[1:]} {largest.cause.phrase}, {size} an iteration in the ledger, but the job ends no"
        " earlier when it is replayed without that."
    )
