"""Findings of one event. In: candidates. Out: which of them strike the same ranks in the same few iterations.

A rank that evaluates or saves alone, every hundredth step, computes longer and pauses in the same iterations: two
causes in the ledger, one thing in the program. They stay two findings, as their time is of two kinds, but stand
together with the costlier one first, and say that they are of the same iterations.
Not handled: causes that last; those of one rank may well be two faults.
"""

from collections.abc import Sequence

import numpy as np

from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.thresholds import attribute as thresholds


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
    return len(np.intersect1d(mine, others)) >= thresholds.COINCIDING_SHARE * max(len(mine), len(others))


def _comes_and_goes(one: FindingCandidate) -> bool:
    """Whether it is work of some ranks in some iterations, for certain."""
    is_of_ranks = one.subject.kind != "job" and one.cause.claims_transfer is None and not one.is_in_turns
    return is_of_ranks and one.confidence != "low" and one.effect.pattern != "persistent"
