"""Whose it is. In: how much longer each rank works. Out: the set of ranks that explains it best, and what it is called.

Of all sets the one with the greatest likelihood of an equal shift of its members against none is a run of the ranks in
the order of their shifts (linear-time subset scanning: Neill 2012), so that R sets are tried in the place of 2^R. A set
that people know (the ranks of a host, the members of a group, everyone) is named instead if it explains nearly as much.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.findings.lost_time import JudgedRun
from traceforge.thresholds import attribute as thresholds
from traceforge.units import listed

_SHOWN = 8
EVERY_RANK = "every rank"
ONE_OR_ANOTHER = "one rank or another"


@dataclass(frozen=True, slots=True)
class Subject:
    """Ranks that are blamed together.

    Attributes:
        kind: rank, ranks, host, stage or job.
        name: as in attribute.finding.subject.
        places: of its ranks in the arrays, ascending.
        said: for a sentence.
    """

    kind: str
    name: str
    places: tuple[int, ...]
    said: str


def rank_of(run: JudgedRun, place: int) -> Subject:
    """One rank."""
    return Subject("rank", str(run.ranks[place]), (place,), f"rank {run.ranks[place]}")


def ranks_of(run: JudgedRun, places: Sequence[int]) -> Subject:
    """Several ranks that are no group."""
    return _named(run, tuple(places))


def everyone(run: JudgedRun) -> Subject:
    """All ranks, in the same iterations; one that was recorded alone by its number."""
    said = EVERY_RANK if len(run.ranks) > 1 else f"rank {run.ranks[0]}"
    return Subject("job", "all", tuple(range(len(run.ranks))), said)


def one_or_another(places: Sequence[int]) -> Subject:
    """The job, where ranks lose in turns, or each at its time."""
    return Subject("job", "all", tuple(places), ONE_OR_ANOTHER)


def known_sets(run: JudgedRun) -> list[Subject]:
    """Hosts with several ranks, stages, then other groups that communicate; proper parts of the job."""
    count = len(run.ranks)
    found: dict[tuple[int, ...], Subject] = {}
    for host in sorted({host for host in run.hosts if host}):
        places = tuple(place for place, own in enumerate(run.hosts) if own == host)
        if 1 < len(places) < count:
            found[places] = Subject("host", host, places, f"host {host}")
    role = run.ledger.model.role
    for stage in [] if role is None else np.unique(role).tolist():
        places = tuple(np.flatnonzero(role == stage).tolist())
        if 1 < len(places) < count and places not in found:
            said = f"stage {stage} ({ranks_said([run.ranks[place] for place in places])})"
            found[places] = Subject("stage", str(stage), places, said)
    place_of = {rank: place for place, rank in enumerate(run.ranks)}
    for number, ranks in sorted(run.members.items()):
        places = tuple(sorted(place_of[rank] for rank in ranks if rank in place_of))
        if 1 < len(places) < count and places not in found:
            found[places] = _named(run, places, f" (communicator {number})")
    return list(found.values())


def slow_set(run: JudgedRun, shift_ns: NDArray[np.float64], known: Sequence[Subject]) -> Subject | None:
    """The ranks that are slow alike; None where no rank is.

    Args:
        shift_ns: how much longer each rank works than the reference, shape (R,).
    """
    order = np.argsort(-shift_ns, kind="stable")
    positive = np.maximum(0.0, shift_ns)
    gain = np.cumsum(positive[order]) ** 2 / np.arange(1, len(order) + 1)
    if not gain[0] > 0:
        return None
    size = int(gain.argmax()) + 1
    best = tuple(sorted(order[:size].tolist()))
    named = [*known, everyone(run)]
    scores = [_explained(positive, one.places) for one in named]
    nearest = int(np.argmax(scores))
    if scores[nearest] >= thresholds.KNOWN_SET_PART * gain.max() and is_shared(positive[list(named[nearest].places)]):
        return named[nearest]
    # More than half of the ranks are what the others are held against; they are no set of their own.
    if size == 1 or 2 * size > len(order) or not is_alike(shift_ns[list(best)]):
        return rank_of(run, int(order[0]))
    return _named(run, best)


def is_shared(shift_ns: NDArray[np.float64]) -> bool:
    """Whether most of some ranks have at least half of their mean, shape (ranks,)."""
    return float((shift_ns >= shift_ns.mean() / 2).mean()) >= thresholds.HOST_SHARE


def is_alike(shift_ns: NDArray[np.float64]) -> bool:
    """Whether all of some ranks have about as much, shape (ranks,)."""
    return float(shift_ns.min()) >= thresholds.ALIKE_PART * float(shift_ns.mean())


def _explained(positive_ns: NDArray[np.float64], places: Sequence[int]) -> float:
    return float(positive_ns[list(places)].sum()) ** 2 / len(places)


def _named(run: JudgedRun, places: tuple[int, ...], suffix: str = "") -> Subject:
    ranks = [run.ranks[place] for place in places]
    said = " and ".join(ranks_said(ranks).rsplit(", ", 1))
    return Subject("ranks", ", ".join(map(str, ranks)), places, f"each of {said}{suffix}")


def ranks_said(ranks: Sequence[int]) -> str:
    """Ranks in words: many that follow one another by their ends, the first few of others."""
    if len(ranks) > _SHOWN and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"ranks {ranks[0]}\N{EN DASH}{ranks[-1]}"
    shown = [str(rank) for rank in ranks[:_SHOWN]]
    return f"rank{'' if len(ranks) == 1 else 's'} {', '.join(shown)}{', …' if len(ranks) > len(shown) else ''}"


def between_hosts(run: JudgedRun, hosts: Sequence[str]) -> Subject:
    """The link between two hosts, or the network between several."""
    places = tuple(np.flatnonzero([host in hosts for host in run.hosts]).tolist())
    what = "link" if len(hosts) == 2 else "network"
    return Subject("link", ", ".join(hosts), places, f"the {what} between hosts {_hosts_said(hosts)}")


def between_sides(run: JudgedRun, some: Sequence[str], others: Sequence[str]) -> Subject:
    """The network between two groups of hosts, that are all hosts of the job."""
    one, other = (f"host{'' if len(side) == 1 else 's'} {_hosts_said(side)}" for side in (some, others))
    places = tuple(range(len(run.hosts)))
    return Subject(
        "link", f"{', '.join(some)} | {', '.join(others)}", places, f"the network between {one}, and {other}"
    )


def _hosts_said(hosts: Sequence[str]) -> str:
    rest = hosts[_SHOWN:]
    return listed([*hosts[:_SHOWN], f"{len(rest)} more"] if rest else hosts)
