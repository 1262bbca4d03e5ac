"""How sure an effect is. In: its size, whose it is, its p-value. Out: high, medium or low; and its pattern."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.thresholds import attribute as thresholds


@dataclass(frozen=True, slots=True)
class GradeLimits:
    """Limits that are stricter for some causes and runs; as thresholds of the same names.

    Attributes:
        any_size: whether what ranks lose may be of all sizes, as noise is, and in a single one of few iterations: a
            pause of the host has a name.
        is_like_taken_cores: whether other programs on the same cores may look like it.
    """

    medium_share: float = thresholds.MEDIUM_SHARE
    high_share: float = thresholds.HIGH_SHARE
    rotating_share: float = thresholds.ROTATING_SHARE
    one_off_share: float = thresholds.ONE_OFF_SHARE
    any_size: bool = False
    is_like_taken_cores: bool = False


@dataclass(frozen=True, slots=True)
class GradeInputs:
    """What the grade of some ranks rests on.

    Attributes:
        share: delay over the mean iteration.
        dominance: part of the cause's delay that is theirs, beside what is explained already.
        p_value: probability of so much on any such set by chance.
        iterations: number judged.
        affected: number of them in which the delay stands out.
        hit_share: mean delay of those over the median iteration.
        stands_alone: whether these iterations are far outside what the others show.
        is_apart: whether these ranks lose far more in each iteration than any other rank in any.
    """

    share: float
    dominance: float
    p_value: float
    iterations: int
    affected: int
    hit_share: float
    stands_alone: bool = False
    is_apart: bool = False


def grade_of_ranks(found: GradeInputs, limits: GradeLimits) -> str:
    """Confidence in a delay of some ranks."""
    if _is_high(found, limits):
        return "high"
    # One or two iterations show as well what was lost, but not whether it recurs.
    is_hard_hit = found.share >= thresholds.HARD_HIT_SHARE and found.dominance >= thresholds.MEDIUM_DOMINANCE
    if found.affected == found.iterations < thresholds.FEW_ITERATIONS and is_hard_hit:
        return "medium"
    # Few iterations can never be unlikely by counting; but one rank that loses much in each, and no other, is no noise.
    is_in_each = found.affected == found.iterations >= thresholds.FEW_ITERATIONS
    is_large = found.share >= max(thresholds.IN_EACH_SHARE, limits.medium_share)
    if is_in_each and is_large and (found.is_apart or found.dominance >= thresholds.OVERWHELMING_DOMINANCE):
        return "medium"
    # What happens once shows what was lost and by whom, but not whether it recurs.
    is_one_off = found.stands_alone and found.hit_share >= limits.one_off_share
    if is_one_off and found.share >= limits.medium_share and found.dominance >= thresholds.SOLE_DOMINANCE:
        return "medium"
    # Several that stand out at once share what is lost.
    is_certain = found.share >= limits.high_share and found.p_value <= thresholds.HIGH_P_VALUE
    # Of the many subjects and causes tried, chance makes some small delay stand out far oftener than a large one.
    limit = thresholds.MEDIUM_P_VALUE if found.share >= limits.high_share else thresholds.HIGH_P_VALUE
    is_likely = found.dominance >= thresholds.MEDIUM_DOMINANCE and found.p_value <= limit
    return "medium" if found.share >= limits.medium_share and (is_likely or is_certain) else "low"


def _is_high(found: GradeInputs, limits: GradeLimits) -> bool:
    is_certain = found.dominance >= thresholds.HIGH_DOMINANCE and found.p_value <= thresholds.HIGH_P_VALUE
    hits_hard = (
        found.affected >= thresholds.HARD_HIT_ITERATIONS
        and found.hit_share >= thresholds.HARD_HIT_SHARE
        and found.dominance >= thresholds.SOLE_DOMINANCE
        and found.p_value <= 2 * thresholds.MEDIUM_P_VALUE
    )
    # Three iterations can never be unlikely by counting; but no noise takes a third of each, always on one rank.
    overwhelms = (
        found.share >= thresholds.OVERWHELMING_SHARE
        and found.dominance >= thresholds.OVERWHELMING_DOMINANCE
        and found.affected >= max(thresholds.FEW_ITERATIONS, thresholds.PERSISTENT_SHARE * found.iterations)
    )
    return (
        (found.share >= limits.high_share and is_certain)
        or (found.share >= limits.medium_share and hits_hard)
        or overwhelms
    )


def grade_of_job(
    delays_ns: NDArray[np.float64],
    share: float,
    affected: NDArray[np.int64],
    typical_ns: float,
    limits: GradeLimits,
    spread_of_steps: float = 0.0,
) -> str:
    """Confidence in a delay of no rank: a stretch of slow iterations is hardly chance; single ones must be many, large.

    Args:
        delays_ns: shape (iterations,).
        share: of the affected iterations' delay in the run's time.
        typical_ns: median iteration.
        spread_of_steps: of the logarithm of their work; delays show only the longer half of it.
    """
    if len(affected) < thresholds.FEW_ITERATIONS:
        return "low"
    others, hit = np.delete(delays_ns, affected), float(delays_ns[affected].mean())
    spread = float(others.std()) if len(others) >= thresholds.FEW_ITERATIONS else 0.0
    above = hit - (float(others.mean()) if len(others) else 0.0)
    if above < _beyond(thresholds.JOB_SPREADS, spread, spread_of_steps, typical_ns):
        return "low"
    if _is_episode(affected):
        return "high" if share >= limits.high_share else "medium" if share >= limits.medium_share else "low"
    is_large = (
        share >= limits.medium_share
        and hit / typical_ns >= thresholds.HARD_HIT_SHARE / 2
        and above >= _beyond(2 * thresholds.JOB_SPREADS, spread, spread_of_steps, typical_ns)
    )
    return "medium" if is_large else "low"


def reach_ns(spreads: float, spread_of_steps: float, typical_ns: float) -> float:
    """How much longer a step is that lies so many spreads above the usual one; steps differ by factors."""
    return typical_ns * math.expm1(spreads * spread_of_steps)


def _beyond(spreads: float, spread_ns: float, spread_of_steps: float, typical_ns: float) -> float:
    return max(spreads * spread_ns, reach_ns(spreads, spread_of_steps, typical_ns))


def grade_of_turns(share: float, affected: NDArray[np.int64], limits: GradeLimits) -> str:
    """Confidence in a delay that ranks cause in turns: a few uneven iterations are what any busy machine shows."""
    if len(affected) < thresholds.ROTATING_ITERATIONS:
        return "low"
    return "high" if share >= 2 * limits.rotating_share else "medium"


def pattern_of(affected: NDArray[np.int64], iterations: int) -> str:
    """persistent (in most iterations), episode (several in a row, mostly), one_off or transient."""
    if len(affected) == 1 and iterations > 1:
        return "one_off"
    is_one_stretch = len(affected) >= thresholds.EPISODE_ITERATIONS and _longest_stretch(affected) == len(affected)
    if is_one_stretch and len(affected) < thresholds.LONGEST_EPISODE_SHARE * iterations:
        return "episode"
    if len(affected) >= thresholds.PERSISTENT_SHARE * iterations and iterations > 1:
        return "persistent"
    return "episode" if _is_episode(affected) else "transient"


def begins_the_run(affected: NDArray[np.int64]) -> bool:
    """Whether iterations are one stretch from the first judged on, as where a job warms up."""
    return bool(affected[0] == 0) and _longest_stretch(affected) == len(affected)


def _is_episode(affected: NDArray[np.int64]) -> bool:
    longest = _longest_stretch(affected)
    return longest >= thresholds.EPISODE_ITERATIONS and longest >= thresholds.EPISODE_SHARE * len(affected)


def _longest_stretch(affected: NDArray[np.int64]) -> int:
    return max(len(stretch) for stretch in np.split(affected, np.flatnonzero(np.diff(affected) > 1) + 1))
