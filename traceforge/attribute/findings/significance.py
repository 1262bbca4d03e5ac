"""What stands out. In: delays of one cause by iteration and rank. Out: effects with a grade of confidence.

A rank stands out if, were ranks interchangeable within each iteration, so much delay would hardly gather on one of
them (permutation test), or if it is hit hard and alone in a few iterations. What no rank owns (transfers) stands out
only in iterations that leave the run's own spread. Small effects never count, however certain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Delays = NDArray[np.float64]

# Between the 5 % and 25 % points of a normal distribution lie this many standard deviations.
_SD_PER_LOWER_RANGE = 0.97
_PERMUTATIONS = 2000
_BOOTSTRAPS = 1000
# So many ranks must lead in turns.
_LEAST_LEADERS = 3
# In so many iterations something is there all the time.
_MOSTLY = 0.6


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When an effect counts; shares of the median iteration.

    The p_values are strict because some ten causes are tried, each on its own.
    """

    affected_share: float = 0.05
    affected_spreads: float = 5.0
    reported_share: float = 0.01
    medium_share: float = 0.025
    high_share: float = 0.05
    hard_hit_share: float = 0.2
    overwhelming_share: float = 0.3
    overwhelming_dominance: float = 0.9
    sole_dominance: float = 0.8
    medium_dominance: float = 0.4
    high_dominance: float = 0.6
    medium_p_value: float = 0.01
    high_p_value: float = 0.002
    turns_share: float = 0.06
    turns_iterations: int = 10
    turns_share_of_two: float = 0.18
    turns_part_of_two: float = 0.7
    job_spreads: float = 4.0


@dataclass(frozen=True, slots=True)
class Effect:
    """How one subject's delay of one cause stands out; see the columns of attribute.finding of the same names."""

    place: int
    delay_ns_per_iteration: float
    interval_ns: tuple[float, float] | None
    share: float
    confidence: str
    pattern: str
    affected: NDArray[np.int64]
    affected_delay_ns: float
    dominance: float
    p_value: float | None


def effects_of_ranks(
    delays_ns: Delays, durations_ns: Delays, rng: np.random.Generator, rules: Thresholds
) -> list[Effect]:
    """Ranks that stand out by work of their own, which each rank's own clock measures, whatever its offset.

    Args:
        delays_ns: delay of one cause, shape (iterations, ranks).
        durations_ns: iteration durations, shape (iterations,).
    """
    typical = float(np.median(durations_ns))
    shares = delays_ns.mean(axis=0) / durations_ns.mean()
    if shares.max() < rules.reported_share:
        return []
    positive = np.maximum(0, delays_ns)
    total = positive.sum()
    result = []
    p_values, sure = _p_values(positive, shares, rng, rules)
    floor = rules.affected_share * typical
    for place in range(delays_ns.shape[1]):
        own = delays_ns[:, place]
        affected = np.flatnonzero(own >= floor)
        share = float(shares[place])
        if share < rules.reported_share or not len(affected):
            continue
        dominance = float(positive[:, place].sum() / total)
        hit = float(own[affected].mean())
        of_rest = float(positive[:, place].sum() / (total - positive[:, [s for s in sure if s != place]].sum()))
        told = _GradeInputs(share, dominance, of_rest, float(p_values[place]), len(own), len(affected), hit / typical)
        result.append(
            Effect(
                place,
                float(own.mean()),
                _interval(own, rng),
                share,
                _grade_rank(told, rules),
                pattern_of(affected, len(own)),
                affected,
                hit,
                dominance,
                float(p_values[place]),
            )
        )
    return result


def _p_values(
    positive_ns: Delays, shares: Delays, rng: np.random.Generator, rules: Thresholds
) -> tuple[NDArray[np.float64], list[int]]:
    """Chance of each rank, and the ranks that stand out of all; the others are tried again among themselves.

    One rank that is slow for long would else make all departures look lasting, and hide the next one.
    """
    candidates = np.flatnonzero(shares >= rules.reported_share)
    p_values = rank_p_values(positive_ns, rng, candidates.tolist())
    sure = np.flatnonzero(p_values <= rules.medium_p_value)
    rest = np.setdiff1d(np.flatnonzero(shares >= rules.medium_share), sure)
    others = np.setdiff1d(np.arange(len(shares)), sure)
    if len(sure) and len(rest) and len(others) > 1:
        again = rank_p_values(positive_ns[:, others], rng.spawn(1)[0], np.searchsorted(others, rest).tolist())
        p_values[rest] = again[np.searchsorted(others, rest)]
    return p_values, sure.tolist()


def dominant_rank(
    delays_ns: Delays,
    affected: NDArray[np.int64],
    durations_ns: Delays,
    rng: np.random.Generator,
    rules: Thresholds,
) -> Effect | None:
    """The rank to which nearly all belongs that the job loses in some iterations, graded low; None if there is none.

    Where a loss is no noise of the run, counting need not show whose it is.
    """
    positive = np.maximum(0, delays_ns[affected]).sum(axis=0)
    place = int(positive.argmax())
    if positive[place] < rules.sole_dominance * positive.sum():
        return None
    own = delays_ns[:, place]
    p_value = float(rank_p_values(np.maximum(0, delays_ns), rng, [place])[place])
    return Effect(
        place,
        float(own.mean()),
        _interval(own, rng),
        float(own.mean() / durations_ns.mean()),
        "low",
        pattern_of(affected, len(own)),
        affected,
        float(own[affected].mean()),
        float(positive[place] / positive.sum()),
        p_value,
    )


def effect_on_job(
    delays_ns: Delays, durations_ns: Delays, residual_ns: float, rng: np.random.Generator, rules: Thresholds
) -> Effect | None:
    """Whether a delay that is nobody's in particular stands out of the run's own spread; shape (iterations,).

    Such a delay lies between ranks, so nothing below three clock residuals counts.
    """
    typical = float(np.median(durations_ns))
    # The lower part of the distribution tells the run's own spread even if most iterations are affected.
    lowest, low = np.quantile(delays_ns, [0.05, 0.25])
    spread = float(low - lowest) / _SD_PER_LOWER_RANGE
    floor = float(low) + max(rules.affected_spreads * spread, rules.affected_share * typical, 3 * residual_ns)
    affected = np.flatnonzero(delays_ns >= floor)
    share = delays_ns[affected].sum() / durations_ns.sum() if len(affected) else 0.0
    if share < rules.reported_share:
        return None
    hit = float(delays_ns[affected].mean())
    confidence = _grade_job(delays_ns, float(share), affected, hit / typical, rules)
    own = np.where(np.isin(np.arange(len(delays_ns)), affected), delays_ns, 0.0)
    return Effect(
        -1,
        float(own.mean()),
        _interval(own, rng),
        float(share),
        confidence,
        pattern_of(affected, len(delays_ns)),
        affected,
        hit,
        1.0,
        None,
    )


def rotating_straggler(
    delays_ns: Delays, durations_ns: Delays, rng: np.random.Generator, rules: Thresholds
) -> Effect | None:
    """Whether ranks delay the job in turns: what is nobody's in particular and yet far beyond an even pace.

    Args:
        delays_ns: delay of one cause, shape (iterations, ranks).
    """
    typical = float(np.median(durations_ns))
    by_iteration = delays_ns.sum(axis=1)
    affected = np.flatnonzero(by_iteration >= rules.affected_share * typical)
    # What hits most iterations hits the others as well, only less.
    is_hit = np.isin(np.arange(len(by_iteration)), affected) | (len(affected) >= _MOSTLY * len(by_iteration))
    own = np.where(is_hit, by_iteration, 0.0)
    share = own.sum() / durations_ns.sum()
    leaders = np.unique(delays_ns[affected].argmax(axis=1)) if len(affected) else affected
    if share < rules.turns_share or len(leaders) < max(2, min(_LEAST_LEADERS, delays_ns.shape[1])):
        return None
    if delays_ns.shape[1] < _LEAST_LEADERS:
        # One of two ranks leads in any noise; turns are large, and neither rank's alone.
        parts = np.maximum(0, delays_ns[affected]).sum(axis=0)
        if share < rules.turns_share_of_two or parts.max() > rules.turns_part_of_two * parts.sum():
            return None
    hit = float(by_iteration[affected].mean())
    # A few uneven iterations are what any run on a busy machine shows.
    grade = "high" if share >= 2 * rules.turns_share else "medium"
    return Effect(
        -1,
        float(own.mean()),
        _interval(own, rng),
        float(share),
        grade if len(affected) >= rules.turns_iterations else "low",
        "rotating",
        affected,
        hit,
        1.0,
        None,
    )


def rank_p_values(
    positive_ns: Delays, rng: np.random.Generator, candidates: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Probability, for each rank, that some rank gathers as much if ranks are interchangeable.

    Noise that lasts some iterations would pass for one rank's: as many iterations as it lasts change places together.
    How long it lasts is told by the other ranks, since a fault of the rank itself may last as well; the one of them
    that varies most is left out for the same reason.

    Args:
        candidates: ranks for which to tell it (all by default); 1 for the others.
    """
    ranks = positive_ns.shape[1]
    result = np.ones(ranks)
    if ranks < 2:
        return result
    by_length: dict[int, list[int]] = {}
    for rank in range(ranks) if candidates is None else candidates:
        others = np.delete(positive_ns, rank, axis=1)
        if ranks > _LEAST_LEADERS:
            others = np.delete(others, others.var(axis=0).argmax(), axis=1)
        by_length.setdefault(lasting_iterations(others), []).append(rank)
    for length, members in by_length.items():
        own = positive_ns.sum(axis=0)[members]
        as_much = np.ones(len(members))
        blocks = np.add.reduceat(positive_ns, np.arange(0, len(positive_ns), length), axis=0)
        for _ in range(_PERMUTATIONS):  # one at a time: all at once would take gigabytes for a thousand ranks
            as_much += rng.permuted(blocks, axis=1).sum(axis=0).max() >= own - 0.5
        result[members] = as_much / (_PERMUTATIONS + 1)
    return result


def lasting_iterations(delays_ns: Delays) -> int:
    """How many iterations a rank's departures from its own mean last, from their correlation with the next ones."""
    count = len(delays_ns)
    departures = delays_ns - delays_ns.mean(axis=0)
    variance = float((departures**2).sum())
    if count < 4 or variance == 0:
        return 1
    correlation = float((departures[1:] * departures[:-1]).sum()) / variance
    lasting = (1 + correlation) / (1 - min(correlation, 0.9))
    return int(np.clip(round(lasting), 1, count // 4))


def pattern_of(affected: NDArray[np.int64], iterations: int) -> str:
    """persistent (in at least 60 % of iterations), episode (three or more in a row, mostly) or transient."""
    longest = _longest_run(affected)
    if longest >= 3 and longest == len(affected) < 0.9 * iterations:
        return "episode"
    if len(affected) >= _MOSTLY * iterations and iterations > 1:
        return "persistent"
    return "episode" if longest >= 3 and longest >= 0.6 * len(affected) else "transient"


def _longest_run(affected: NDArray[np.int64]) -> int:
    return max(len(run) for run in np.split(affected, np.flatnonzero(np.diff(affected) > 1) + 1))


@dataclass(frozen=True, slots=True)
class _GradeInputs:
    """What a rank's grade rests on."""

    share: float
    dominance: float
    dominance_of_rest: float
    p_value: float
    iterations: int
    affected: int
    hit_share: float


def _grade_rank(told: _GradeInputs, rules: Thresholds) -> str:
    share, dominance, p_value = told.share, told.dominance, told.p_value
    hard_hits = told.affected >= 4 and told.hit_share >= rules.hard_hit_share and dominance >= 0.8
    if share >= rules.high_share and dominance >= rules.high_dominance and p_value <= rules.high_p_value:
        return "high"
    if share >= rules.medium_share and hard_hits and p_value <= 2 * rules.medium_p_value:
        return "high"
    # Three iterations can never be unlikely by counting; but no noise takes a third of each, always on one rank.
    # One or two show as well what was lost, but not whether it recurs.
    overwhelms = share >= rules.overwhelming_share and told.affected >= 0.6 * told.iterations
    if overwhelms and dominance >= rules.overwhelming_dominance and told.affected >= 3:
        return "high"
    hits_hard = told.affected == told.iterations < 3 and share >= rules.hard_hit_share
    if hits_hard and dominance >= rules.medium_dominance:
        return "medium"
    # Several that stand out at once share what is lost.
    is_certain = share >= rules.high_share and p_value <= rules.high_p_value
    is_likely = told.dominance_of_rest >= rules.medium_dominance and p_value <= rules.medium_p_value
    return "medium" if share >= rules.medium_share and (is_likely or is_certain) else "low"


def _grade_job(
    delays_ns: Delays, share: float, affected: NDArray[np.int64], hit_share: float, rules: Thresholds
) -> str:
    """A stretch of slow iterations is hardly chance; single ones must be many and large."""
    if len(affected) < 3:
        return "low"
    others = np.delete(delays_ns, affected)
    spread = float(others.std()) if len(others) >= 3 else 0.0
    above = float(delays_ns[affected].mean() - (others.mean() if len(others) else 0.0))
    if above < rules.job_spreads * spread:
        return "low"
    longest = _longest_run(affected)
    if longest >= 3 and longest >= 0.6 * len(affected):
        return "high" if share >= rules.high_share else "medium" if share >= rules.medium_share else "low"
    is_large = (
        share >= rules.medium_share
        and hit_share >= rules.hard_hit_share / 2
        and above >= 2 * rules.job_spreads * spread
    )
    return "medium" if is_large else "low"


def _interval(own: Delays, rng: np.random.Generator) -> tuple[float, float] | None:
    if len(own) < 3:
        return None
    means = own[rng.integers(0, len(own), (_BOOTSTRAPS, len(own)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
