"""What stands out. In: delays of a subject by iteration. Out: effects with a grade of confidence.

A set of ranks stands out if, were ranks interchangeable, so much delay would hardly gather on it (see `chance`), or if
it is hit hard and alone in a few iterations. What no rank owns (transfers), or all have, stands out only in iterations
that leave the run's own spread. Small effects never count, however certain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from traceforge.attribute.findings.chance import gathering_p_value, spacing_p_value
from traceforge.attribute.findings.grading import (
    GradeInputs,
    GradeLimits,
    grade_of_job,
    grade_of_ranks,
    grade_of_turns,
    pattern_of,
    reach_ns,
)
from traceforge.attribute.findings.lost_time import Delays
from traceforge.stats import Interval, mean_interval
from traceforge.thresholds import attribute as thresholds
from traceforge.thresholds.align import RESOLUTION_RESIDUALS

# The lower part of the distribution shows the run's own spread even if most iterations are affected.
_LOWER_RANGE = [thresholds.LOWEST_USUAL, thresholds.LOW_USUAL]
_SD_PER_LOWER_RANGE = float(ndtri(thresholds.LOW_USUAL) - ndtri(thresholds.LOWEST_USUAL))


@dataclass(frozen=True, slots=True)
class Effect:
    """How one subject's delay stands out; see the columns of attribute.finding of the same names."""

    delay_ns_per_iteration: float
    interval_ns: Interval | None
    share: float
    confidence: str
    pattern: str
    affected: NDArray[np.int64]
    affected_delay_ns: float
    by_iteration_ns: Delays
    dominance: float = 1.0
    p_value: float | None = None


def effect_on_ranks(
    delays_ns: Delays,
    places: Sequence[int],
    durations_ns: Delays,
    limits: GradeLimits,
    alternatives: float,
    possible: NDArray[np.int64] | None = None,
) -> Effect | None:
    """How the delay of some ranks stands out; each rank's own clock measures it, whatever its offset.

    Args:
        delays_ns: delay by some cause, shape (iterations, ranks).
        places: of the ranks.
        durations_ns: iteration durations, shape (iterations,).
        alternatives: how many other sets could have been named in their place.
        possible: iterations in which a delay would show; None where that is not known.
    """
    typical = float(np.median(durations_ns))
    chosen = np.asarray(places, dtype=np.int64)
    own = delays_ns[:, chosen].sum(axis=1)
    share = float(own.mean() / durations_ns.mean())
    affected = affected_iterations(own, typical)
    if share < thresholds.REPORTED_SHARE or not len(affected):
        return None
    positive = np.maximum(0.0, delays_ns)
    p_value = gathering_p_value(positive, chosen, alternatives)
    by_rank = positive.sum(axis=0)
    dominance = float(by_rank[chosen].sum() / by_rank.sum())
    # Of ranks that take turns each is struck at even distances.
    if possible is not None and dominance >= thresholds.HIGH_DOMINANCE:
        p_value *= spacing_p_value(affected, possible)
    hit = float(own[affected].mean())
    inputs = GradeInputs(
        share=share,
        dominance=dominance,
        p_value=p_value,
        iterations=len(own),
        affected=len(affected),
        hit_share=hit / typical,
        stands_alone=stands_alone(own, affected)
        or (limits.any_size and _dwarfs_others(own, affected, typical, limits)),
        is_apart=_is_apart(positive, chosen),
    )
    return replace(_effect(own, affected, share, grade_of_ranks(inputs, limits)), dominance=dominance, p_value=p_value)


def _is_apart(delays_ns: Delays, chosen: NDArray[np.int64]) -> bool:
    """Whether ranks always lose far more than any other ever does; delays >= 0, shape (iterations, ranks)."""
    others = np.delete(delays_ns, chosen, axis=1)
    return bool(delays_ns[:, chosen].min() >= thresholds.IN_EACH_FACTOR * others.max(initial=0.0))


def affected_iterations(delays_ns: Delays, typical_ns: float) -> NDArray[np.int64]:
    """Iterations in which a subject's delay stands out, shape (iterations,); of what is always there, nearly all."""
    floor = max(
        thresholds.AFFECTED_SHARE * typical_ns, thresholds.AFFECTED_OF_LARGEST * float(delays_ns.max(initial=0))
    )
    affected = np.flatnonzero(delays_ns >= floor)
    usual = float(np.median(delays_ns))
    hit = float(delays_ns[affected].mean()) if len(affected) else 0.0
    if usual >= max(thresholds.REPORTED_SHARE * typical_ns, hit / 2):
        return np.flatnonzero(delays_ns >= usual / 2)
    return affected


def effect_on_job(
    delays_ns: Delays,
    durations_ns: Delays,
    residual_ns: float,
    limits: GradeLimits,
    own_ns: Delays | None = None,
    usual: NDArray[np.bool_] | None = None,
) -> Effect | None:
    """Whether a delay that is nobody's in particular stands out of the run's own spread; shape (iterations,).

    Such a delay lies between ranks, so nothing below three clock residuals counts.

    Args:
        own_ns: the ranks' own work above the reference, shape (iterations, ranks), where it is work that they lose.
            Iterations that are shorter cost nothing, so that only this shows how much steps vary by themselves, as
            with sequence lengths.
        usual: iterations at the usual pace, shape (iterations,), where that got slower for good; else None.
    """
    typical = float(np.median(durations_ns))
    spread, low = _usual_spread(delays_ns)
    if usual is not None:
        spread, low = min((spread, low), _spread_before(delays_ns[usual]))
    of_steps = _spread_of_steps(own_ns, typical)
    floor = low + max(
        thresholds.AFFECTED_SPREADS * spread,
        reach_ns(thresholds.AFFECTED_SPREADS, of_steps, typical),
        thresholds.AFFECTED_SHARE * typical,
        RESOLUTION_RESIDUALS * residual_ns,
        thresholds.AFFECTED_OF_LARGEST * float(delays_ns.max(initial=0)) - low,
    )
    affected = np.flatnonzero(delays_ns >= floor)
    share = float(delays_ns[affected].sum() / durations_ns.sum())
    if not len(affected) or share < thresholds.REPORTED_SHARE:
        return None
    confidence = grade_of_job(delays_ns, share, affected, typical, limits, of_steps)
    return _effect(_within(delays_ns, affected), affected, share, confidence)


def _spread_of_steps(own_ns: Delays | None, typical_ns: float) -> float:
    """Standard deviation of the logarithm of the ranks' mean work, of those iterations that do not stand out of it.

    Lengths of steps have a long upper tail, which their lower part does not show: what lies within reach of the spread
    found so far widens it, until nothing more does.
    """
    if own_ns is None or len(own_ns) <= thresholds.ONE_OFF_OTHERS:
        # Of so few iterations the slow one is itself among those that show the spread.
        return 0.0
    together = np.log(np.maximum(1 + own_ns.mean(axis=1) / typical_ns, thresholds.AFFECTED_SHARE))
    spread, low = _usual_spread(together)
    while (wider := float(together[together <= low + thresholds.AFFECTED_SPREADS * spread].std())) > spread:
        spread = wider
    return spread


def _usual_spread(amounts_ns: Delays) -> tuple[float, float]:
    """Standard deviation of a run's usual iterations, and an amount below which a quarter of them lie.

    Where only the first few are alike and all others far above, the quarter ends between two levels: no spread.
    """
    lowest, low = np.quantile(amounts_ns, _LOWER_RANGE)
    count = 1 + int(thresholds.LOW_USUAL * (len(amounts_ns) - 1))
    first = amounts_ns[:count]
    if count >= thresholds.FEW_ITERATIONS and low - first.max() > thresholds.AFFECTED_SPREADS * np.ptp(first):
        lowest, low = first.min(), first.max()
    return float(low - lowest) / _SD_PER_LOWER_RANGE, float(low)


def _spread_before(usual_ns: Delays) -> tuple[float, float]:
    """Standard deviation and mean of the iterations before a pace got slower; of too few, nothing is known."""
    if len(usual_ns) < thresholds.FEW_ITERATIONS:
        return np.inf, 0.0
    return float(usual_ns.std()), float(usual_ns.mean())


def apart_from_all(delays_ns: Delays, own_ns: Delays) -> Delays:
    """Delays without what all ranks lose alike in an iteration, shape (iterations, ranks); one alone has no peers.

    Args:
        own_ns: the ranks' own work above the reference, likewise.
    """
    if delays_ns.shape[1] == 1:
        return delays_ns
    total = delays_ns.sum(axis=1)
    of_all = np.maximum(0.0, own_ns.min(axis=1))
    kept = np.divide(np.maximum(0.0, total - of_all), total, out=np.ones_like(total), where=total > 0)
    result: Delays = delays_ns * kept[:, None]
    return result


def effect_in_turns(delays_ns: Delays, durations_ns: Delays, limits: GradeLimits) -> Effect | None:
    """Whether ranks delay the job in turns: what is nobody's in particular and yet far beyond an even pace.

    Args:
        delays_ns: delay of one cause, shape (iterations, ranks).
    """
    by_iteration = delays_ns.sum(axis=1)
    affected = np.flatnonzero(by_iteration >= thresholds.AFFECTED_SHARE * float(np.median(durations_ns)))
    # What hits most iterations hits the others as well, only less.
    is_persistent = len(affected) >= thresholds.PERSISTENT_SHARE * len(by_iteration)
    counted = np.arange(len(by_iteration)) if is_persistent else affected
    share = float(by_iteration[counted].sum() / durations_ns.sum())
    if share < limits.rotating_share or not _is_in_turns(delays_ns, affected, share):
        return None
    # Where each rank loses enough by itself, it is not that there are so many of them.
    is_of_many = share < thresholds.REPORTED_SHARE * delays_ns.shape[1]
    if is_of_many and not limits.any_size and _is_of_all_sizes(by_iteration, affected):
        return None
    if limits.is_like_taken_cores and not _strikes_one_alike(delays_ns[affected]):
        return None
    effect = _effect(_within(by_iteration, counted), affected, share, grade_of_turns(share, affected, limits))
    return replace(effect, pattern="rotating")


def _strikes_one_alike(delays_ns: Delays) -> bool:
    """Whether iterations lose nearly all on one rank, and about as much each time; shape (iterations, ranks).

    Cores that other programs take are lost by several ranks at once, and for all lengths of time.
    """
    positive = np.maximum(0.0, delays_ns)
    largest = positive.max(axis=1)
    is_of_one = largest >= thresholds.SOLE_DOMINANCE * positive.sum(axis=1)
    shortest, longest = np.quantile(largest, (thresholds.LOW_USUAL, 1 - thresholds.LOW_USUAL))
    return bool(2 * np.count_nonzero(is_of_one) > len(is_of_one) and shortest >= thresholds.ROTATING_SIZE * longest)


def _is_of_all_sizes(delays_ns: Delays, affected: NDArray[np.int64]) -> bool:
    """Whether many iterations lose somewhat less than the affected ones, shape (iterations,).

    Among many ranks some kernel takes long in nearly every iteration; how long has no typical size. What a fault takes
    has one, so that iterations are struck or are not.
    """
    size = thresholds.ROTATING_SIZE * float(delays_ns[affected].mean())
    large, smaller = (delays_ns >= size).sum(), ((delays_ns >= size / 2) & (delays_ns < size)).sum()
    return bool(smaller > thresholds.ROTATING_SMALLER * (large + smaller))


def stands_alone(delays_ns: Delays, affected: NDArray[np.int64], least_ns: float = 0.0) -> bool:
    """Whether few iterations are far outside what the others show; shape (iterations,)."""
    others = np.delete(delays_ns, affected)
    if len(others) < thresholds.ONE_OFF_OTHERS or not len(affected):
        return False
    usual, spread = float(others.mean()), float(others.std())
    return float(delays_ns[affected].min()) - usual >= max(least_ns, 2 * thresholds.JOB_SPREADS * spread)


def _dwarfs_others(delays_ns: Delays, affected: NDArray[np.int64], typical_ns: float, limits: GradeLimits) -> bool:
    """Whether iterations lose so much that the few others can be told to be usual; shape (iterations,).

    The first one may show how recording began; and a core may be taken for about an iteration.
    """
    others, least_ns = np.abs(np.delete(delays_ns, affected)), float(delays_ns[affected].min())
    if len(others) < 2 or not affected[0]:
        return False
    is_long = not limits.is_like_taken_cores or least_ns >= thresholds.ONE_OFF_COMPUTE_SHARE * typical_ns
    return is_long and bool(others.max() <= thresholds.CLOSE_SHARE * least_ns)


def with_one_off(
    effect: Effect, delays_ns: Delays, durations_ns: Delays, limits: GradeLimits, own_ns: Delays | None = None
) -> Effect:
    """A loss of everyone; once is enough if it is large and the others show nothing like it.

    Args:
        delays_ns: what the effect is of, shape (iterations,).
        own_ns: as for `effect_on_job`.
    """
    few = len(effect.affected) < thresholds.FEW_ITERATIONS
    typical = float(np.median(durations_ns))
    is_large = effect.affected_delay_ns >= thresholds.ONE_OFF_SHARE * typical
    least_ns = reach_ns(2 * thresholds.JOB_SPREADS, _spread_of_steps(own_ns, typical), typical)
    is_alone = stands_alone(delays_ns, effect.affected, least_ns) or (
        own_ns is not None and limits.any_size and _is_one_pause(own_ns, durations_ns, effect)
    )
    is_sure = effect.share >= limits.medium_share and is_alone
    return replace(effect, confidence="medium") if few and is_large and is_sure else effect


def _is_one_pause(own_ns: Delays, durations_ns: Delays, effect: Effect) -> bool:
    """Whether of very few iterations one has a pause that is everyone's: as long for each rank, and the others alike.

    Two others at least must agree, far closer than the pause lasts: of two that differ none is the usual one.
    """
    (struck, *more), others = effect.affected.tolist(), np.delete(durations_ns, effect.affected)
    if more or len(durations_ns) < thresholds.FEW_ITERATIONS or own_ns.shape[1] < 2:
        return False
    paused = own_ns[struck]
    differ = max(float(np.ptp(paused)), float(np.ptp(others)), float(np.abs(np.delete(own_ns, struck, axis=0)).max()))
    return bool(differ <= thresholds.CLOSE_SHARE * paused.min())


def _within(delays_ns: Delays, counted: NDArray[np.int64]) -> Delays:
    """Delays of some iterations, and of the others nothing."""
    return np.where(np.isin(np.arange(len(delays_ns)), counted), delays_ns, 0.0)


def _effect(delays_ns: Delays, affected: NDArray[np.int64], share: float, confidence: str) -> Effect:
    return Effect(
        delay_ns_per_iteration=float(delays_ns.mean()),
        interval_ns=mean_interval(delays_ns),
        share=share,
        confidence=confidence,
        pattern=pattern_of(affected, len(delays_ns)),
        affected=affected,
        affected_delay_ns=float(delays_ns[affected].mean()),
        by_iteration_ns=delays_ns,
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
