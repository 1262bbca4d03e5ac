"""Whose link is slow for a while. In: slow transfers of a run, and when they were. Out: a link, where one explains all.

A network that is slow for all cannot be told from one NIC that is where all transfers pass all hosts. Where some
communicators, or paths of messages, leave hosts out, those that are slow may all pass one host and the others not: it
is that host's link. Or they all pass from some hosts to the others, each side of which is at pace within: it is what
lies between them. Not handled: two hosts at once; how much slower each transfer is tells no more than that it is slow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceforge.attribute.findings.lost_time import JudgedRun
from traceforge.attribute.findings.shared_path import place_passed
from traceforge.attribute.findings.subjects import Subject, between_hosts, between_sides
from traceforge.attribute.ledger.slow_transfers import excess_of
from traceforge.replay.reference import references
from traceforge.thresholds import attribute as thresholds

Hosts = frozenset[str | None]


@dataclass(frozen=True, slots=True)
class _Transfers:
    """Hosts of owners: of those that are slow between hosts, of those at pace between hosts, and of those at pace."""

    slow: dict[int, Hosts]
    between: dict[int, Hosts]
    at_pace: list[Hosts]


def own_link(run: JudgedRun, affected: Sequence[int]) -> Subject | None:
    """The one place whose transfers were slow.

    Args:
        affected: places of the affected iterations among those judged.
    """
    found = None if None in run.hosts else _divided(run, affected)
    if found is None:
        return None
    place = place_passed(run, found.slow.keys(), found.slow.keys() | found.between.keys())
    if place is None:
        return _between_sides(run, found)
    said = place.said if place.kind in ("nic", "link") else f"the link of {place.said}"
    return replace(place, kind="link", said=said)


def _divided(run: JudgedRun, affected: Sequence[int]) -> _Transfers | None:
    """Transfers that were slow, and those that were not; None where none tells hosts apart, or it is not so clear.

    What stays within a host uses no link of it, and what passes all hosts tells none of them apart.
    """
    number = run.ledger.communicators
    hosts = [_hosts_of(run, owner) for owner in number]
    telling = [n for n, own in enumerate(hosts) if len(own) < len(set(run.hosts))]
    if sum(len(hosts[n]) > 1 for n in telling) < 2 or len(telling) <= 2:
        return None
    longer, usual = _times(run, affected)
    slowdown = {n: float(longer[n] / usual[n]) for n in telling if usual[n] > 0}
    between = [n for n in slowdown if len(hosts[n]) > 1]
    least = thresholds.SLOW_LINK_PART * float(longer[between].sum()) / max(1.0, float(usual[between].sum()))
    slow = {n for n in between if slowdown[n] >= least > 0}
    others = [n for n in slowdown if n not in slow]
    if len(slow) < 2 or not others:
        return None
    is_clear = max(slowdown[n] for n in others) <= thresholds.SLOW_LINK_PART * min(slowdown[n] for n in slow)
    is_enough = longer[sorted(slow)].sum() >= thresholds.TELLING_SHARE * np.maximum(0.0, longer).sum()
    if not is_clear or not is_enough:
        return None
    return _Transfers(
        {number[n]: hosts[n] for n in slow},
        {number[n]: hosts[n] for n in others if len(hosts[n]) > 1},
        [hosts[n] for n in others],
    )


def _hosts_of(run: JudgedRun, owner: int) -> Hosts:
    ranks = set(run.ranks_on(owner))
    return frozenset(host for rank, host in zip(run.ranks, run.hosts, strict=True) if rank in ranks)


def _times(run: JudgedRun, affected: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By how much transfers of each communicator took longer, and how long they usually take, ns, shape (C,)."""
    excess, expected = excess_of(run.ledger, references(run.ledger.model))
    places = [run.places[i] for i in affected]
    return excess[places].sum(axis=0), expected[places].sum(axis=0)


def _between_sides(run: JudgedRun, found: _Transfers) -> Subject | None:
    """What lies between two sides that are each held together by transfers at pace, if all slow ones pass it."""
    sides: list[Hosts] = []
    for hosts in found.at_pace:
        joined = [side for side in sides if side & hosts]
        sides = [side for side in sides if side not in joined] + [hosts.union(*joined)]
    if len(sides) != 2 or sides[0] | sides[1] != frozenset(run.hosts):
        return None
    if not all(hosts & sides[0] and hosts & sides[1] for hosts in found.slow.values()):
        return None
    ends = sorted(map(str, frozenset[str | None]().union(*found.slow.values())))
    # Where one pair of hosts alone sends across, it says more than the sides.
    if len(ends) == 2:
        return between_hosts(run, ends)
    return between_sides(run, *sorted(sorted(map(str, side)) for side in sides))
