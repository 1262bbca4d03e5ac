"""Findings of one event. In: candidates. Out: the same, and which strike the same ranks in the same few iterations.

A rank that evaluates or saves alone, every hundredth step, computes longer and pauses in the same iterations: two
causes in the ledger, one thing in the program. They stay two findings, as their time is of two kinds, but stand
together with the costlier one first, and say that they are of the same iterations. What alone may be chance is none
where it comes with what is certain: a pause that may be of taken cores, just when its rank evaluates.
Not handled: causes that last; those of one rank may well be two faults.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from traceforge.attribute.findings.coinciding import chance_of_sharing
from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.thresholds import attribute as thresholds


def with_sure_events(found: Sequence[FindingCandidate], iterations: int) -> list[FindingCandidate]:
    """Candidates, of which hints that come with a sure one of the same ranks are likely."""
    return [_with_its_event(one, found, iterations) for one in found]


def _with_its_event(one: FindingCandidate, found: Sequence[FindingCandidate], iterations: int) -> FindingCandidate:
    effect = one.effect
    if one.confidence != "low" or one.companion_of or effect.share < thresholds.MEDIUM_SHARE:
        return one
    likely = replace(one, effect=replace(effect, confidence="medium"))
    for other in found:
        if other is not one and _is_same_event(likely, other):
            shared, struck = len(np.intersect1d(effect.affected, other.effect.affected)), len(effect.affected)
            if chance_of_sharing(shared, struck, len(other.effect.affected), iterations) <= thresholds.HIGH_P_VALUE:
                return likely
    return one


def events_of(found: Sequence[FindingCandidate]) -> list[int]:
    """Of each candidate the place of the first one of its event: its own, where it shares its iterations with none."""
    events: list[int] = []
    for n, one in enumerate(found):
        same = (m for m in range(n) if _is_same_event(one, found[m]))
        events.append(next((events[m] for m in same), n))
    return events


def _is_same_event(one: FindingCandidate, other: FindingCandidate) -> bool:
    if one.subject != other.subject or not (_comes_and_goes(one) and _comes_and_goes(other)):
        return False
    mine, others = one.effect.affected, other.effect.affected
    shared, sizes = len(np.intersect1d(mine, others)), (len(mine), len(others))
    return shared >= thresholds.COINCIDING_SHARE * min(sizes) and 2 * shared >= max(sizes)


def _comes_and_goes(one: FindingCandidate) -> bool:
    """Whether it is work of some ranks in some iterations, for certain."""
    is_in_all = one.effect.pattern == "persistent" or len(one.effect.affected) == len(one.effect.by_iteration_ns)
    is_of_ranks = one.subject.kind != "job" and one.cause.claims_transfer is None and not one.is_in_turns
    return is_of_ranks and one.confidence != "low" and not is_in_all
