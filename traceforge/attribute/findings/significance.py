"""What stands out. In: delays of one cause by iteration and rank. Out: effects with a grade of confidence.

A rank stands out if, were ranks interchangeable within each iteration, so much delay would hardly gather on one of
them (permutation test), or if it is hit hard and alone in a few iterations. What no rank owns (transfers) stands out
only in iterations that leave the run's own spread. Small effects never count, however certain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from traceforge.attribute.findings.grading import (
    GradeInputs,
    GradeLimits,
    grade_of_job,
    grade_of_rank,
    grade_of_turns,
    pattern_of,
)
from traceforge.stats import Interval, lasting_count, mean_interval
from traceforge.thresholds import attribute as thresholds
from traceforge.thresholds.align import RESOLUTION_RESIDUALS

Delays = NDArray[np.float64]

_PERMUTATIONS = 2000
# The lower part of the distribution shows the run's own spread even if most iterations are affected.
_LOWER_RANGE = [thresholds.LOWEST_USUAL, thresholds.LOW_USUAL]
_SD_PER_LOWER_RANGE = float(ndtri(thresholds.LOW_USUAL) - ndtri(thresholds.LOWEST_USUAL))


@dataclass(frozen=True, slots=True)
class Effect:
    """How one subject's delay of one cause stands out; see the columns of attribute.finding of the same names."""

    place: int
    delay_ns_per_iteration: float
    interval_ns: Interval | None
    share: float
    confidence: str
    pattern: str
    affected: NDArray[np.int64]
    affected_delay_ns: float
    dominance: float = 1.0
    p_value: float | None = None


def effects_of_ranks(
    delays_ns: Delays, durations_ns: Delays, rng: np.random.Generator, limits: GradeLimits
) -> list[Effect]:
    """Ranks that stand out by work of their own, which each rank's own clock measures, whatever its offset.

    Args:
        delays_ns: delay of one cause, shape (iterations, ranks).
        durations_ns: iteration durations, shape (iterations,).
    """
    typical = float(np.median(durations_ns))
    shares = delays_ns.mean(axis=0) / durations_ns.mean()
    if shares.max() < thresholds.REPORTED_SHARE:
        return []
    positive = np.maximum(0, delays_ns)
    total = positive.sum()
    result = []
    p_values, certain = _p_values(positive, shares, rng, limits)
    for place in np.flatnonzero(shares >= thresholds.REPORTED_SHARE).tolist():
        own = delays_ns[:, place]
        affected = np.flatnonzero(own >= thresholds.AFFECTED_SHARE * typical)
        if not len(affected):
            continue
        dominance = float(positive[:, place].sum() / total)
        hit = float(own[affected].mean())
        rest = total - positive[:, [rank for rank in certain if rank != place]].sum()
        inputs = GradeInputs(
            share=float(shares[place]),
            dominance=dominance,
            dominance_of_rest=float(positive[:, place].sum() / rest),
            p_value=float(p_values[place]),
            iterations=len(own),
            affected=len(affected),
            hit_share=hit / typical,
        )
        result.append(
            Effect(
                place=place,
                delay_ns_per_iteration=float(own.mean()),
                interval_ns=mean_interval(own),
                share=inputs.share,
                confidence=grade_of_rank(inputs, limits),
                pattern=pattern_of(affected, len(own)),
                affected=affected,
                affected_delay_ns=hit,
                dominance=dominance,
                p_value=inputs.p_value,
            )
        )
    return result


def _p_values(
    positive_ns: Delays, shares: Delays, rng: np.random.Generator, limits: GradeLimits
) -> tuple[NDArray[np.float64], list[int]]:
    """P-value of each rank, and the ranks that stand out of all; the others are tried again among themselves.

    One rank that is slow for long would else make all departures look lasting, and hide the next one.
    """
    p_values = rank_p_values(positive_ns, rng, np.flatnonzero(shares >= thresholds.REPORTED_SHARE).tolist())
    certain = np.flatnonzero(p_values <= thresholds.MEDIUM_P_VALUE)
    rest = np.setdiff1d(np.flatnonzero(shares >= limits.medium_share), certain)
    others = np.setdiff1d(np.arange(len(shares)), certain)
    if len(certain) and len(rest) and len(others) > 1:
        again = rank_p_values(positive_ns[:, others], rng.spawn(1)[0], np.searchsorted(others, rest).tolist())
        p_values[rest] = again[np.searchsorted(others, rest)]
    return p_values, certain.tolist()


def dominant_rank(
    delays_ns: Delays, affected: NDArray[np.int64], durations_ns: Delays, rng: np.random.Generator
) -> Effect | None:
    """The rank to which nearly all belongs that the job loses in some iterations, graded low; None if there is none.

    Where a loss is no noise of the run, counting need not show whose it is.
    """
    positive = np.maximum(0, delays_ns[affected]).sum(axis=0)
    place = int(positive.argmax())
    if positive[place] < thresholds.SOLE_DOMINANCE * positive.sum():
        return None
    own = delays_ns[:, place]
    return Effect(
        place=place,
        delay_ns_per_iteration=float(own.mean()),
        interval_ns=mean_interval(own),
        share=float(own.mean() / durations_ns.mean()),
        confidence="low",
        pattern=pattern_of(affected, len(own)),
        affected=affected,
        affected_delay_ns=float(own[affected].mean()),
        dominance=float(positive[place] / positive.sum()),
        p_value=float(rank_p_values(np.maximum(0, delays_ns), rng, [place])[place]),
    )


def effect_on_job(delays_ns: Delays, durations_ns: Delays, residual_ns: float, limits: GradeLimits) -> Effect | None:
    """Whether a delay that is nobody's in particular stands out of the run's own spread; shape (iterations,).

    Such a delay lies between ranks, so nothing below three clock residuals counts.
    """
    typical = float(np.median(durations_ns))
    lowest, low = np.quantile(delays_ns, _LOWER_RANGE)
    spread = float(low - lowest) / _SD_PER_LOWER_RANGE
    floor = float(low) + max(
        thresholds.AFFECTED_SPREADS * spread,
        thresholds.AFFECTED_SHARE * typical,
        RESOLUTION_RESIDUALS * residual_ns,
    )
    affected = np.flatnonzero(delays_ns >= floor)
    share = float(delays_ns[affected].sum() / durations_ns.sum())
    if not len(affected) or share < thresholds.REPORTED_SHARE:
        return None
    own = np.where(np.isin(np.arange(len(delays_ns)), affected), delays_ns, 0.0)
    return Effect(
        place=-1,
        delay_ns_per_iteration=float(own.mean()),
        interval_ns=mean_interval(own),
        share=share,
        confidence=grade_of_job(delays_ns, share, affected, typical, limits),
        pattern=pattern_of(affected, len(delays_ns)),
        affected=affected,
        affected_delay_ns=float(delays_ns[affected].mean()),
    )


def rotating_straggler(delays_ns: Delays, durations_ns: Delays, limits: GradeLimits) -> Effect | None:
    """Whether ranks delay the job in turns: what is nobody's in particular and yet far beyond an even pace.

    Args:
        delays_ns: delay of one cause, shape (iterations, ranks).
    """
    by_iteration = delays_ns.sum(axis=1)
    affected = np.flatnonzero(by_iteration >= thresholds.AFFECTED_SHARE * float(np.median(durations_ns)))
    # What hits most iterations hits the others as well, only less.
    is_persistent = len(affected) >= thresholds.PERSISTENT_SHARE * len(by_iteration)
    own = np.where(np.isin(np.arange(len(by_iteration)), affected) | is_persistent, by_iteration, 0.0)
    share = float(own.sum() / durations_ns.sum())
    if share < limits.rotating_share or not _is_in_turns(delays_ns, affected, share):
        return None
    return Effect(
        place=-1,
        delay_ns_per_iteration=float(own.mean()),
        interval_ns=mean_interval(own),
        share=share,
        confidence=grade_of_turns(share, affected, limits),
        pattern="rotating",
        affected=affected,
        affected_delay_ns=float(by_iteration[affected].mean()),
    )


def _is_in_turns(delays_ns: Delays, affected: NDArray[np.int64], share: float) -> bool:
    """Whether several ranks lead in turns; one of two leads in any noise, so theirs are large and neither one's."""
    ranks = delays_ns.shape[1]
    leaders = np.unique(delays_ns[affected].argmax(axis=1)) if len(affected) else affected
    if len(leaders) < max(2, min(thresholds.ROTATING_LEADERS, ranks)):
        return False
    parts = np.maximum(0, delays_ns[affected]).sum(axis=0)
    return ranks >= thresholds.ROTATING_LEADERS or bool(
        share >= thresholds.ROTATING_SHARE_OF_TWO and parts.max() <= thresholds.ROTATING_PART_OF_TWO * parts.sum()
    )


def rank_p_values(
    positive_ns: Delays, rng: np.random.Generator, candidates: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Probability, for each rank, that some rank gathers as much if ranks are interchangeable.

    Noise that lasts some iterations would pass for one rank's: as many iterations as it lasts change places together.
    The other ranks show how long it lasts, since a fault of the rank itself may last as well; the one of them
    that varies most is left out for the same reason.

    Args:
        candidates: ranks to test (all by default); 1 for the others.
    """
    ranks = positive_ns.shape[1]
    result = np.ones(ranks)
    if ranks < 2:
        return result
    by_length: dict[int, list[int]] = {}
    for rank in range(ranks) if candidates is None else candidates:
        others = np.delete(positive_ns, rank, axis=1)
        if others.shape[1] > 2:
            others = np.delete(others, others.var(axis=0).argmax(), axis=1)
        by_length.setdefault(lasting_count(others), []).append(rank)
    for length, members in by_length.items():
        own = positive_ns.sum(axis=0)[members]
        as_much = np.ones(len(members))
        blocks = np.add.reduceat(positive_ns, np.arange(0, len(positive_ns), length), axis=0)
        for _ in range(_PERMUTATIONS):  # one at a time: all at once would take gigabytes for a thousand ranks
            as_much += rng.permuted(blocks, axis=1).sum(axis=0).max() >= own - 0.5
        result[members] = as_much / (_PERMUTATIONS + 1)
    return result
