"""Which injections are one trouble, and whom it strikes. In: a cluster and injections. Out: troubles, each a subject.

Idea: a right answer names a subject (a rank, several, a host, a communicator, everyone), and a subject can be struck by
several injections: a rank by changing causes, two ranks by the same one. Injections that share a word are one trouble.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection, SubjectKind, faults
from traceforge.synth.target import ranks_struck


@dataclass(frozen=True, slots=True)
class Trouble:
    """Injections that one answer should name together.

    Attributes:
        numbers: of the injections.
        modes: their failure modes, each once, in alphabetical order.
        subject_kind: what the answer should name.
        subject: its name as a finding gives it: `3`, `3, 7`, `node1`, `all`; of communicators, the ranks
            of each; of a link, its two ranks or hosts.
        ranks: all ranks that are struck.
    """

    numbers: tuple[int, ...]
    modes: tuple[str, ...]
    subject_kind: SubjectKind
    subject: str
    ranks: tuple[int, ...]


def troubles_of(cluster: Cluster, injections: Sequence[Injection]) -> list[Trouble]:
    """Troubles, in the order in which their first injections stand."""
    members: dict[str, list[int]] = {}
    for number, injection in enumerate(injections):
        members.setdefault(injection.trouble or f"injection {number}", []).append(number)
    return [_trouble(cluster, injections, numbers) for numbers in members.values()]


def _trouble(cluster: Cluster, injections: Sequence[Injection], numbers: Sequence[int]) -> Trouble:
    own = [injections[number] for number in numbers]
    modes = tuple(sorted({faults()[one.fault].mode for one in own}))
    kinds = {faults()[one.fault].subject_kind for one in own}
    ranks = tuple(sorted({rank for one in own for rank in _struck(cluster, one)}))
    if "job" in kinds or (kinds <= {"rank", "host", "stage"} and len(ranks) == cluster.ranks > 1):
        return Trouble(tuple(numbers), modes, "job", "all", ranks)
    if kinds == {"communicator"}:
        groups = [group for one in own for group in faults()[one.fault].groups(cluster, one.place)]
        named = "; ".join(_listed(group.ranks) for group in groups)
        return Trouble(tuple(numbers), modes, "communicator", named, ranks)
    if kinds == {"stage"} and len(own) == 1:
        return Trouble(tuple(numbers), modes, "stage", str(own[0].place), ranks)
    if kinds == {"link"} and len(own) == 1:
        hosts = ", ".join(dict.fromkeys(map(cluster.host_of, ranks)))
        is_of_hosts = faults()[own[0].fault].target == "hosts"
        return Trouble(tuple(numbers), modes, "link", hosts if is_of_hosts else _listed(ranks), ranks)
    nodes = {cluster.node_of(rank) for rank in ranks}
    if len(nodes) == 1 and len(ranks) == cluster.devices > 1:
        return Trouble(tuple(numbers), modes, "host", cluster.host_of(ranks[0]), ranks)
    return Trouble(tuple(numbers), modes, "rank" if len(ranks) == 1 else "ranks", _listed(ranks), ranks)


def _struck(cluster: Cluster, injection: Injection) -> list[int]:
    fault = faults()[injection.fault]
    if fault.subject_kind == "communicator":
        return [rank for group in fault.groups(cluster, injection.place) for rank in group.ranks]
    if fault.subject_kind == "job":
        return list(range(cluster.ranks))
    return ranks_struck(cluster, fault.target, injection.place)


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))
