"""What would have been seen. In: what the search left unexplained. Out: the smallest delay that it would have found.

A known delay is added to the run's own losses, to one subject after another, and the same test is asked again. The
smallest size that is found in 95 % of draws is what "nothing" excludes; below it the run is silent. Sizes are tried on
a grid of shares of the mean iteration, which starts where any delay is too small to count.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from traceforge.attribute.cause import causes
from traceforge.attribute.findings.effects import effect_on_job
from traceforge.attribute.findings.grading import GradeLimits
from traceforge.attribute.findings.lost_time import Delays, JudgedRun, LostTime
from traceforge.attribute.findings.search import CauseNode, effect_of_subject, limits_of
from traceforge.attribute.findings.slow_transfer_search import transfer_limits
from traceforge.attribute.findings.subjects import Subject, known_sets, rank_of, ranks_of
from traceforge.thresholds import attribute as thresholds

_SHARES = (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0)
_DRAWS = 20
# An episode lasts so large a part of the run: one in so many iterations.
_EPISODE_PART = 4
PERSISTENT, EPISODE = "persistent", "episode"


@dataclass(frozen=True, slots=True)
class Sight:
    """The smallest delay that would have been found; None where none would."""

    subject_kind: str
    cause: str
    pattern: str
    smallest_ns: float | None


def sights(run: JudgedRun, lost: LostTime, transfers_ns: Delays) -> Iterator[Sight]:
    """What the search sees in a run.

    Args:
        lost: what it left unexplained.
        transfers_ns: slow transfers of all communicators together, shape (judged iterations,).
    """
    for kind, subjects in _subjects(run).items():
        if subjects:
            hides = _moves_reference(run, subjects)
            yield from _of_work(run, lost, kind, PERSISTENT, partial(_smallest, run, subjects), hides)
    # All ranks alike in all iterations are their own reference; in the first ones they warm up.
    yield from _of_work(run, lost, "job", EPISODE, partial(_smallest_pause, run))
    fabric = next((cause for cause in causes().values() if cause.claims_transfer == "fabric"), None)
    if fabric is not None:
        limits = transfer_limits(run, fabric)
        yield Sight("job", fabric.name, EPISODE, _smallest_episode(run, transfers_ns, limits, run.residual_ns))
        # What is slow for everyone from the first iteration to the last is the run's own reference.
        yield Sight("job", fabric.name, PERSISTENT, None)


def _subjects(run: JudgedRun) -> dict[str, list[Subject]]:
    """Whom a delay is given to, by kind: single ranks, pairs of ranks of different halves, hosts, stages."""
    known, places, half = known_sets(run), _spread(len(run.ranks)), len(run.ranks) // 2
    pairs = [ranks_of(run, sorted({place, (place + half) % len(run.ranks)})) for place in places]
    return {
        "rank": [rank_of(run, place) for place in places] if len(run.ranks) > 1 else [],
        # Half of the ranks, or more, are no set beside the others.
        "ranks": [one for one in pairs if 1 < len(one.places) < len(run.ranks) / 2],
        "host": [one for one in known if one.kind == "host"][:_DRAWS],
        "stage": [one for one in known if one.kind == "stage"][:_DRAWS],
    }


def _of_work(
    run: JudgedRun,
    lost: LostTime,
    kind: str,
    pattern: str,
    smallest: Callable[[Delays, Delays, GradeLimits], float | None],
    hides: bool = False,
) -> Iterator[Sight]:
    """Each cause that work may be late by; where nothing is lost by it, it is seen as well as any other such one.

    Args:
        hides: whether work that is always longer is the reference; pauses of a host never are.
    """
    quiet: dict[GradeLimits, float | None] = {}
    for cause in causes().values():
        if cause.claims_transfer is not None or cause.mode == "unexplained":
            continue
        if hides and not cause.is_pause(run.has_device):
            yield Sight(kind, cause.name, pattern, None)
            continue
        numbers = tuple(n for n, name in enumerate(lost.causes) if name == cause.name)
        limits = limits_of(run, CauseNode(cause, numbers), lost.causes)
        cost, own = lost.of(numbers)
        if cost.any() or limits not in quiet:
            found = smallest(cost, own, limits)
            if not cost.any():
                quiet[limits] = found
        else:
            found = quiet[limits]
        yield Sight(kind, cause.name, pattern, found)


def _smallest_pause(run: JudgedRun, cost: Delays, own: Delays, limits: GradeLimits) -> float | None:
    """Of all ranks alike, for some iterations in a row; it must show among steps that vary on all ranks alike."""
    return _smallest_episode(run, cost.sum(axis=1), limits, 0, first=1, own_ns=own)


def _moves_reference(run: JudgedRun, subjects: Sequence[Subject]) -> bool:
    """Whether a subject is all there is of its role, so that what it always computes is its own reference."""
    role = run.ledger.model.role
    return role is not None and any(
        not (role[[place for place in range(len(role)) if place not in one.places]] == role[one.places[0]]).any()
        for one in subjects
    )


def _smallest(
    run: JudgedRun, subjects: Sequence[Subject], cost: Delays, own: Delays, limits: GradeLimits
) -> float | None:
    """Of any one of the subjects, in all iterations."""

    def is_found(subject: Subject, delay_ns: float) -> bool:
        more, longer, places = cost.copy(), own.copy(), list(subject.places)
        more[:, places] += delay_ns / len(places)
        longer[:, places] += delay_ns
        effect = effect_of_subject(run, more, longer, subject, limits, len(subjects))
        return effect is not None and effect.confidence != "low"

    return _first_found(run, [partial(is_found, one) for one in subjects])


def _smallest_episode(
    run: JudgedRun,
    delays_ns: Delays,
    limits: GradeLimits,
    residual_ns: float,
    first: int = 0,
    own_ns: Delays | None = None,
) -> float | None:
    """Of the job, in a stretch of iterations; delays of shape (judged iterations,), stretches from `first` on.

    Args:
        own_ns: as for `effect_on_job`, to which the delay is added as well.
    """
    count = len(delays_ns)
    length = min(max(thresholds.EPISODE_ITERATIONS, count // _EPISODE_PART), count)

    def is_found(start: int, delay_ns: float) -> bool:
        added = np.zeros(count)
        added[start : start + length] = delay_ns * count / length
        own = None if own_ns is None else own_ns + added[:, None]
        effect = effect_on_job(delays_ns + added, run.durations_ns, residual_ns, limits, own)
        return effect is not None and effect.confidence != "low"

    last = count - length
    if last < first:
        return None
    starts = sorted({int(place) for place in np.linspace(first, last, min(_DRAWS, last - first + 1))})
    return _first_found(run, [partial(is_found, start) for start in starts])


def _first_found(run: JudgedRun, draws: Sequence[Callable[[float], bool]]) -> float | None:
    """The smallest delay on the grid that is found in enough draws."""
    for factor in _SHARES:
        # A hair above the least share that counts, which rounding must not undercut.
        delay_ns = 1.001 * factor * thresholds.MEDIUM_SHARE * float(run.durations_ns.mean())
        most_missed, missed = len(draws) * (1 - thresholds.SIGHT_SHARE) + 1e-9, 0
        for draw in draws:
            missed += not draw(delay_ns)
            if missed > most_missed:
                break
        else:
            return delay_ns
    return None


def _spread(ranks: int) -> list[int]:
    """Places of the ranks that are tried, evenly spread over all."""
    return sorted({int(place) for place in np.linspace(0, ranks - 1, min(_DRAWS, ranks))})
