"""Which links a scale uses. In: points. Out: whether each stays within a host, and how far that may be continued.

Links within a host are several times as fast as those between hosts, so a curve holds on one side of that boundary
only. Hosts are taken from what the runs name. Where none does, a jump of the time for the same bytes shows the
boundary. Not known from traces: where racks end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traceforge.forecast.scale_point import Array, ScalePoint, ranks_of
from traceforge.replay.all_reduce import bytes_factor
from traceforge.thresholds import forecast as thresholds
from traceforge.units import plural

SPANS_HOSTS = "spans_hosts"


@dataclass(frozen=True, slots=True)
class Boundary:
    """What is known of the step from one host to several.

    Attributes:
        inside: largest number of ranks known to stay within a host; None where none is.
        across: smallest number of ranks known to be on several hosts; None where none is.
        is_named: whether the runs name their hosts; else the boundary was inferred from a jump of the transfers.
    """

    inside: int | None
    across: int | None
    is_named: bool

    def refusal(self, ranks: float) -> str | None:
        """Why nothing can be said of so many ranks; None where something can."""
        if self.across is not None or self.inside is None or ranks <= self.inside:
            return None
        return (
            f"no run crossed hosts: all {plural(self.inside, 'rank')} of the largest share one; whether {ranks:g} fit"
            " into a host, and what links between hosts carry, shows a run on two hosts"
        )


def with_regimes(points: Sequence[ScalePoint]) -> list[ScalePoint]:
    """The same points by ascending ranks; where no run names a host, those on either side of a jump are told apart."""
    ordered = sorted(points, key=lambda point: point.ranks)
    first = None if any(SPANS_HOSTS in point.facts for point in ordered) else _jump(ordered)
    if first is None:
        return ordered
    return [replace(one, facts={**one.facts, SPANS_HOSTS: "yes" if one.ranks >= first else "no"}) for one in ordered]


def boundary_of(points: Sequence[ScalePoint]) -> Boundary:
    """The boundary as far as these points know it."""
    inside = max((point.ranks for point in points if point.facts.get(SPANS_HOSTS) == "no"), default=None)
    # What names no host and is larger than what stays within one is taken to cross.
    others = [point.ranks for point in points if _may_cross(point) and (inside is None or point.ranks > inside)]
    is_known = inside is not None or any(SPANS_HOSTS in point.facts for point in points)
    is_named = any("hosts" in point.facts for point in points)
    return Boundary(inside, min(others, default=None) if is_known else None, is_named)


def of_largest(points: Sequence[ScalePoint]) -> list[ScalePoint]:
    """Those that use the same links as the largest; what is not known to differ counts as the same."""
    other = "no" if _may_cross(points[-1]) else "yes"
    return [point for point in points if point.facts.get(SPANS_HOSTS) != other]


def _may_cross(point: ScalePoint) -> bool:
    return point.facts.get(SPANS_HOSTS) != "no"


def _jump(points: Sequence[ScalePoint]) -> int | None:
    """The first number of ranks beyond a jump of the time for the same bytes."""
    known = [point for point in points if point.terms and point.ranks > 1 and _communication_s(point) > 0]
    if len(known) < 2:
        return None
    ranks = ranks_of(known)
    cost = [_communication_s(point) for point in known] / bytes_factor(ranks)
    # Where latency is all, the time for the same bytes grows with the number of ranks.
    growth: Array = cost[1:] / cost[:-1] / (ranks[1:] / ranks[:-1])
    place = int(growth.argmax())
    return known[place + 1].ranks if growth[place] > thresholds.JUMP_OF_TRANSFERS else None


def _communication_s(point: ScalePoint) -> float:
    return point.terms.exposed_s + point.terms.hidden_s - point.terms.contention_s if point.terms else 0.0
