"""Slow transfers that come with a delay of ranks. In: candidates. Out: the same, where one may follow from the other.

Transfers may slow down while ranks wait. Where a run is too short to measure that (`replay.calibration`) and transfers
are slow in the iterations in which some ranks are late, and hardly in others, they may be all that ranks' doing: then
the network is not accused, and the ranks' delay may cost as much more. Not handled: a network that is slow by itself at
just these moments, which nothing in such a run tells from it; the note on the cost says so.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import numpy as np

from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.thresholds import attribute as thresholds
from traceforge.thresholds.replay import LARGEST_COUPLING


def with_coinciding(found: Sequence[FindingCandidate], iterations: int) -> list[FindingCandidate]:
    """Candidates, of which slow transfers that come with ranks' delay are taken for its by-product."""
    result = list(found)
    for n, transfers in enumerate(found):
        if transfers.cause.claims_transfer != "fabric" or transfers.confidence == "low":
            continue
        for m, late in enumerate(found):
            if late.confidence != "low" and _comes_with(transfers, late, iterations):
                result[n] = replace(transfers, companion_of=late.cause.name)
                result[m] = replace(result[m], beside_ns=transfers.effect.delay_ns_per_iteration)
                break
    return result


def _comes_with(transfers: FindingCandidate, late: FindingCandidate, iterations: int) -> bool:
    """Whether transfers are slow in the iterations of a delay of work, and so many would hardly coincide by chance.

    They grow with how long ranks wait, which is no longer than the delay.
    """
    if late.cause.claims_transfer is not None or late.is_in_turns:
        return False
    most_ns = LARGEST_COUPLING * late.effect.delay_ns_per_iteration
    if transfers.effect.delay_ns_per_iteration > most_ns:
        return False
    slow, struck = transfers.effect.affected, late.effect.affected
    shared = len(np.intersect1d(slow, struck))
    if shared < thresholds.COINCIDING_SHARE * len(slow):
        return False
    return chance_of_sharing(shared, len(slow), len(struck), iterations) <= thresholds.HIGH_P_VALUE


def chance_of_sharing(shared: int, some: int, others: int, iterations: int) -> float:
    """Probability that some iterations, drawn at random, share so many or more with others."""
    likely = sum(
        comb(others, both) * comb(iterations - others, some - both) for both in range(shared, min(some, others) + 1)
    )
    return likely / comb(iterations, some)
