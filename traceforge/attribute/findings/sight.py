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
from traceforge.attribute.findings.subjects import Subject, known_sets, rank_of
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
    hosts = [one for one in known_sets(run) if one.kind == "host"]
    ranks = [rank_of(run, place) for place in _spread(len(run.ranks))]
    for kind, subjects in (("rank", ranks if len(run.ranks) > 1 else []), ("host", hosts[:_DRAWS])):
        quiet: dict[GradeLimits, float | None] = {}
        for cause in causes().values():
            if cause.claims_transfer is not None or not subjects or cause.mode == "unexplained":
                continue
            numbers = tuple(n for n, name in enumerate(lost.causes) if name == cause.name)
            limits = limits_of(run, CauseNode(cause, numbers), lost.causes)
            cost, _ = lost.of(numbers)
            # Where nothing is lost by a cause, it is seen as well as any other such cause.
            if not cost.any():
                if limits not in quiet:
                    quiet[limits] = _smallest(run, cost, subjects, limits)
                yield Sight(kind, cause.name, PERSISTENT, quiet[limits])
            else:
                yield Sight(kind, cause.name, PERSISTENT, _smallest(run, cost, subjects, limits))
    fabric = next((cause for cause in causes().values() if cause.claims_transfer == "fabric"), None)
    if fabric is not None:
        limits = transfer_limits(run, fabric)
        yield Sight("job", fabric.name, EPISODE, _smallest_episode(run, transfers_ns, limits))
        # What is slow for everyone from the first iteration to the last is the run's own reference.
        yield Sight("job", fabric.name, PERSISTENT, None)


def _moves_reference(run: JudgedRun, subjects: Sequence[Subject]) -> bool:
    """Whether a subject is all there is of its role, so that what it always loses is its own reference."""
    role = run.ledger.model.role
    return role is not None and any(
        not (role[[place for place in range(len(role)) if place not in one.places]] == role[one.places[0]]).any()
        for one in subjects
    )


def _smallest(run: JudgedRun, cost: Delays, subjects: Sequence[Subject], limits: GradeLimits) -> float | None:
    if _moves_reference(run, subjects):
        return None

    def is_found(subject: Subject, delay_ns: float) -> bool:
        more = cost.copy()
        more[:, list(subject.places)] += delay_ns / len(subject.places)
        effect = effect_of_subject(run, more, subject, limits, len(subjects))
        return effect is not None and effect.confidence != "low"

    return _first_found(run, [partial(is_found, one) for one in subjects])


def _smallest_episode(run: JudgedRun, transfers_ns: Delays, limits: GradeLimits) -> float | None:
    count = len(transfers_ns)
    length = min(max(thresholds.EPISODE_ITERATIONS, count // _EPISODE_PART), count)

    def is_found(first: int, delay_ns: float) -> bool:
        more = transfers_ns.copy()
        more[first : first + length] += delay_ns * count / length
        effect = effect_on_job(more, run.durations_ns, run.residual_ns, limits)
        return effect is not None and effect.confidence != "low"

    starts = sorted({int(place) for place in np.linspace(0, count - length, min(_DRAWS, count - length + 1))})
    return _first_found(run, [partial(is_found, first) for first in starts])


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
