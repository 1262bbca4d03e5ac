"""Who is guilty in more jobs than chance allows. In: who took part in each job and who was accused. Out: p-values.

Idea: if hosts were interchangeable, a job that accuses k of its n hosts would accuse each with the chance k/n. In how
many of its jobs a host is accused is then a sum of independent draws with these chances, whose distribution is computed
exactly (Poisson's binomial); jobs that accuse nobody, or everybody, say nothing about who it is. Holm's correction over
all hosts and NICs together. Not handled: jobs that are no independent draws, such as one job recorded twice; `--job-id`
makes one of these.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceforge.stats import holm
from traceforge.thresholds import history as thresholds


@dataclass(frozen=True, slots=True)
class Participation:
    """A host or NIC in a job.

    Attributes:
        job: what tells jobs apart.
        kind: `host` or `nic`.
        name: of the host or NIC.
        ranks: that it held.
        is_accused: whether a finding of that job names it.
    """

    job: str
    kind: str
    name: str
    ranks: tuple[int, ...]
    is_accused: bool


@dataclass(frozen=True, slots=True)
class Suspect:
    """A host or NIC over all its jobs.

    Attributes:
        jobs: those that it took part in.
        guilty_jobs: those that accuse it, in order.
        expected: in how many it would be accused by chance.
        p_value: probability of being accused so often, or more often, by chance.
        corrected_p_value: the same after Holm's correction for all that were looked at.
        always_ranks: the ranks it held in every one of its jobs where these were always the same, else empty: then
            nobody can tell the host from what those ranks do.
    """

    kind: str
    name: str
    jobs: int
    guilty_jobs: tuple[str, ...]
    expected: float
    p_value: float
    corrected_p_value: float
    always_ranks: tuple[int, ...]

    @property
    def is_named(self) -> bool:
        """Whether it is guilty in more jobs than chance allows."""
        return self.corrected_p_value < thresholds.GUILTY_P_VALUE


def suspects(participations: Iterable[Participation]) -> list[Suspect]:
    """All hosts and NICs, the least explained by chance first."""
    by_job: dict[tuple[str, str], dict[str, Participation]] = {}
    for one in participations:
        own = by_job.setdefault((one.kind, one.job), {})
        before = own.get(one.name)
        own[one.name] = one if before is None else _joined(before, one)
    members: dict[tuple[str, str], list[tuple[Participation, float]]] = {}
    for (kind, _), own in by_job.items():
        chance = sum(one.is_accused for one in own.values()) / len(own)
        for one in own.values():
            members.setdefault((kind, one.name), []).append((one, chance))
    found = [_judged(kind, name, own) for (kind, name), own in members.items()]
    if not found:
        return []
    corrected = holm(np.array([one.p_value for one in found]))
    judged = [replace(one, corrected_p_value=float(p)) for one, p in zip(found, corrected, strict=True)]
    return sorted(judged, key=lambda one: (one.p_value, one.kind, one.name))


def _joined(one: Participation, other: Participation) -> Participation:
    """Two of one job as one."""
    ranks = tuple(sorted({*one.ranks, *other.ranks}))
    return replace(one, ranks=ranks, is_accused=one.is_accused or other.is_accused)


def chance_of_at_least(count: int, chances: Sequence[float]) -> float:
    """Probability that at least `count` of independent events with these chances happen."""
    if not count:
        return 1.0
    # What cannot happen changes nothing.
    possible = [chance for chance in chances if chance]
    distribution = np.zeros(len(possible) + 1)
    distribution[0] = 1.0
    for done, chance in enumerate(possible, start=1):
        one_more = distribution[:done] * chance
        distribution[:done] *= 1 - chance
        distribution[1 : done + 1] += one_more
    # The smaller side is summed, so that tiny probabilities keep their digits.
    return float(min(1.0, distribution[count:].sum()))


def _judged(kind: str, name: str, own: Sequence[tuple[Participation, float]]) -> Suspect:
    guilty = tuple(one.job for one, _ in own if one.is_accused)
    chances = [chance for _, chance in own]
    held = {one.ranks for one, _ in own}
    p_value = chance_of_at_least(len(guilty), chances)
    return Suspect(kind, name, len(own), guilty, sum(chances), p_value, 1.0, held.pop() if len(held) == 1 else ())


def participations_of(rows: Iterable[Mapping[str, object]]) -> list[Participation]:
    """Participations from rows with the columns job, kind, name, ranks and is_accused."""
    found = []
    for row in rows:
        ranks = row["ranks"]
        held = tuple(sorted(ranks)) if isinstance(ranks, list) else ()
        found.append(Participation(str(row["job"]), str(row["kind"]), str(row["name"]), held, bool(row["is_accused"])))
    return found
