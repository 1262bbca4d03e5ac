"""Which stages of a pipeline compute longer, and what it costs. In: operation.stage_*, stage_load. Out: by run.

Idea: the longest stage is told with those that are longer for the same reason, and beside them those that are slower at
the same work for sure. What is saved is played where the pipeline's turns are known, else it is a bound.
Not handled: further reasons at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds

_STAGES = """
SELECT l.run_id, l.stage, l.ranks, l.is_longer, l.compute_ns_per_iteration AS compute_ns,
  l.usual_stage_ns_per_iteration AS usual_ns, l.mean_stage_ns_per_iteration AS mean_ns,
  w.reason, w.slower_ns, w.more_calls_ns, w.own_ns, w.missing_ns, w.low_slowdown, w.high_slowdown,
  s.alone_ns, s.together_ns, p.even_saved_ns
FROM timeline.stage_load AS l
LEFT JOIN operation.stage_work AS w ON w.run_id = l.run_id AND w.stage = l.stage
LEFT JOIN operation.stage_saving AS s ON s.run_id = l.run_id AND s.stage = l.stage
LEFT JOIN timeline.pipeline AS p ON p.run_id = l.run_id
ORDER BY l.run_id, l.compute_ns_per_iteration DESC, l.stage
"""
_HOSTS = "SELECT run_id, host, LIST(rank ORDER BY rank) AS ranks FROM align.rank GROUP BY run_id, host ORDER BY ALL"

_SLOWER, _MORE = "slower", "more"


@dataclass(frozen=True, slots=True)
class StageLoad:
    """What a stage computes, and of a longer one why; names as in the tables, ns an iteration."""

    stage: int
    ranks: tuple[int, ...]
    is_longer: bool
    compute_ns: int
    usual_ns: int
    mean_ns: int
    reason: str | None = None
    slower_ns: int | None = None
    more_calls_ns: int = 0
    own_ns: int = 0
    missing_ns: int = 0
    low_slowdown: float = 0.0
    high_slowdown: float = 0.0
    alone_ns: int | None = None
    together_ns: int | None = None
    even_saved_ns: int | None = None

    @property
    def over_mean(self) -> float:
        """By how much it exceeds the mean stage, as a share of that."""
        return self.compute_ns / self.mean_ns - 1 if self.mean_ns else 0.0

    @property
    def sure_reason(self) -> str:
        """Slower or more; empty where its kernels do not tell for sure."""
        return self.reason if self.reason in (_SLOWER, _MORE) else ""


@dataclass(frozen=True, slots=True)
class LongerStages:
    """The stages that are told of a run.

    Attributes:
        told: the longest first.
        reason: slower, more, or empty where their kernels do not tell for sure.
        pace_ns: what an iteration would be shorter by if they computed as long as the others; None if not known.
        even_ns: what it would be shorter by if all stages shared the work; None where it is pace.
        is_played: whether these were played; else they are bounds.
        excess_share: by how much the longest of them exceeds the usual stage, or the mean one where it is not pace.
        stages: how many the pipeline has.
        hosts: those whose ranks these are, all of them; empty where they are no whole hosts, or every host.
        beside: others, longer for another reason; None where there are none.
    """

    told: tuple[StageLoad, ...]
    reason: str
    pace_ns: int | None
    even_ns: int | None
    is_played: bool
    excess_share: float
    stages: int
    hosts: tuple[str, ...] = ()
    beside: "LongerStages | None" = None

    @property
    def ranks(self) -> frozenset[int]:
        """All of their ranks."""
        return frozenset(rank for stage in self.told for rank in stage.ranks)

    @property
    def saved_ns(self) -> int:
        """The most that mending would save, ns an iteration."""
        return max(self.pace_ns or 0, self.even_ns or 0)

    def costs_much(self, duration_ns: float) -> bool:
        """Whether they exceed the others enough to limit a run of such iterations, and mending would save much."""
        is_large = self.saved_ns >= thresholds.UNBALANCED_SAVING_SHARE * duration_ns
        return is_large and self.excess_share >= thresholds.UNBALANCED_STAGE_SHARE


def longer_stages(store: Store) -> dict[int, LongerStages]:
    """By run which stages compute longer than others; of runs with stages."""
    hosts: dict[int, dict[str | None, tuple[int, ...]]] = {}
    for run_id, host, ranks in store.rows(_HOSTS):
        hosts.setdefault(run_id, {})[host] = tuple(ranks)
    found = {}
    for run_id, rows in groupby(store.records(_STAGES), key=lambda row: row["run_id"]):
        loads = [_load(row) for row in rows]
        found[run_id] = told_of(loads, hosts.get(run_id, {}))
    return found


def _load(row: dict[str, Any]) -> StageLoad:
    known = {name: value for name, value in row.items() if name != "run_id" and value is not None}
    return StageLoad(**{**known, "ranks": tuple(row["ranks"])})


def told_of(loads: Sequence[StageLoad], hosts: dict[str | None, tuple[int, ...]]) -> LongerStages:
    """Of stages of one run, the longest first, those that are told."""
    slow = [one for one in loads if one.is_longer and one.sure_reason == _SLOWER]
    if loads[0] in slow:
        return _slower(slow, loads, hosts)
    uneven = _uneven(loads)
    return replace(uneven, beside=_slower(slow, loads, hosts)) if slow else uneven


def _slower(
    slow: Sequence[StageLoad], loads: Sequence[StageLoad], hosts: dict[str | None, tuple[int, ...]]
) -> LongerStages:
    """Stages that would go at the pace of the others."""
    longest, next_ns = slow[0], max(one.compute_ns for one in loads if one not in slow)
    bound_ns = max(0, longest.compute_ns - next_ns)
    ranks = {rank for one in slow for rank in one.ranks}
    whole = {host: own for host, own in hosts.items() if host is not None and ranks.issuperset(own)}
    is_whole = len(whole) < len(hosts) and sum(map(len, whole.values())) == len(ranks)
    return LongerStages(
        told=tuple(slow),
        reason=_SLOWER,
        pace_ns=bound_ns if longest.together_ns is None else longest.together_ns,
        even_ns=None,
        is_played=longest.together_ns is not None,
        excess_share=longest.compute_ns / longest.usual_ns - 1,
        stages=len(loads),
        hosts=tuple(str(host) for host in whole) if is_whole else (),
    )


def _uneven(loads: Sequence[StageLoad]) -> LongerStages:
    """Stages whose work would be shared by all: the longest, and those like it that exceed the mean one as clearly."""
    longest = loads[0]
    told = [
        one
        for one in loads
        if one.is_longer
        and one.sure_reason == longest.sure_reason
        and (one is longest or one.over_mean >= thresholds.UNBALANCED_STAGE_SHARE)
    ]
    return LongerStages(
        told=tuple(told),
        reason=longest.sure_reason,
        pace_ns=longest.together_ns if len(told) > 1 else longest.alone_ns,
        even_ns=longest.compute_ns - longest.mean_ns if longest.even_saved_ns is None else longest.even_saved_ns,
        is_played=longest.even_saved_ns is not None,
        excess_share=longest.over_mean,
        stages=len(loads),
    )
