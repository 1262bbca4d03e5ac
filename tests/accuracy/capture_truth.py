"""What recorded steps of `capture.py` cost. In: start and end of each rank's steps. Out: what truth.json tells.

Idea: a fault strikes recorded steps only, and costs what these take longer than the median of the others of them, or
of the clean ones before them where it strikes nearly all, from one end of the last rank to the next on the machine's
clock. So truth never comes from a trace. Of two faults some steps have only one, which tells what each costs alone.
"""

import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.accuracy.capture_faults import Fault  # which needs PyTorch

CLEAN = 16
"""Steps before the recorded ones."""
LEAST_OTHERS = 5


def truth_of(name: str, injected: Sequence["Fault"], times: list[list[list[int]]], hosts: list[str]) -> dict[str, Any]:
    """What was injected and what it cost, from start and end of each rank's steps."""
    kind = name.rsplit("-", 1)[1]
    faults = [one for one in injected if one.modes]
    # From one end of the last rank to the next: ranks of a pipeline begin a step while others still end the one before.
    ends = [max(end for _, end in one) for one in zip(*times, strict=True)]
    lasts = [until - since for since, until in pairwise(ends)]
    quarter_ns, clean_ns, three_quarters_ns = statistics.quantiles(lasts[3 : CLEAN - 1], n=4)
    recorded = lasts[CLEAN - 1 :]
    struck = [frozenset(n for n, one in enumerate(faults) if one.strikes(step)) for step in range(len(recorded))]
    usual_ns = _usual_ns(recorded, struck, clean_ns)
    troubles = [_trouble(one, n, recorded, struck, usual_ns, hosts) for n, one in enumerate(faults)]
    return {
        "schema_version": 1, "scenario": name, "world_size": len(hosts), "hosts": hosts,
        "lost": [rank for one in faults if one.hides for rank in one.ranks], "clean_ns": clean_ns,
        "clean_spread": (three_quarters_ns - quarter_ns) / clean_ns, "duration_ns": recorded,
        "iterations": list(range(CLEAN, CLEAN + len(recorded))),
        "faults": [_told_fault(kind, one, struck, trouble) for one, trouble in zip(faults, troubles, strict=True)],
        "troubles": troubles,
    }  # fmt: skip


def _usual_ns(recorded: list[int], struck: list[frozenset[int]], clean_ns: float) -> dict[frozenset[int], float]:
    """What a step takes that is struck by these faults.

    Recording takes time itself: the others of the recorded steps tell what these take without a fault.
    """
    by_faults: dict[frozenset[int], list[int]] = {}
    for ns, hits in zip(recorded, struck, strict=True):
        by_faults.setdefault(hits, []).append(ns)
    usual = {hits: statistics.median(lasts) for hits, lasts in by_faults.items()}
    if len(by_faults.get(frozenset(), ())) < LEAST_OTHERS:
        usual[frozenset()] = clean_ns
    return usual


def _trouble(
    fault: "Fault", number: int, recorded: list[int], struck: list[frozenset[int]],
    usual_ns: dict[frozenset[int], float], hosts: list[str],
) -> dict[str, Any]:  # fmt: skip
    """Whom to name, and what the fault costs: what removing it saves, and what it costs alone."""
    own, none = frozenset({number}), frozenset[int]()
    removed, added = [], []
    for ns, hits in zip(recorded, struck, strict=True):
        # Where no step has just this fault, or just the other one, what is saved is what it costs alone.
        alone_ns = usual_ns[own] - usual_ns[none] if own in usual_ns else ns - usual_ns.get(hits - own, usual_ns[none])
        saved_ns = ns - usual_ns[hits - own] if hits - own in usual_ns else alone_ns
        removed.append(round(saved_ns) if number in hits else 0)
        added.append(round(saved_ns if hits == own else alone_ns) if number in hits else 0)
    ranks, links, of_host = list(fault.ranks) or list(range(len(hosts))), [], None
    if fault.slowed and fault.slowed.cable == "uplink":
        links.append([len(hosts) // 2 - 1, len(hosts) // 2])
    elif fault.slowed:
        of_host = fault.slowed.cable
        ranks = [rank for rank, host in enumerate(hosts) if host == of_host]
    is_of_all = len(ranks) == len(hosts) and not fault.slowed
    kind = "link" if fault.slowed else "job" if is_of_all else "rank" if len(ranks) == 1 else "ranks"
    return {
        "faults": [number], "modes": list(fault.modes), "subject_kind": kind,
        "subject": "all" if is_of_all else ", ".join(map(str, ranks)), "ranks": ranks,
        "links": links, "of_host": of_host, "removed_ns": removed, "added_ns": added,
    }  # fmt: skip


def _told_fault(kind: str, fault: "Fault", struck: list[frozenset[int]], trouble: dict[str, Any]) -> dict[str, Any]:
    hit = [step for step, hits in enumerate(struck) if trouble["faults"][0] in hits]
    return {
        "kind": kind, "mode": "/".join(fault.modes), "rank": fault.ranks[0] if len(fault.ranks) == 1 else None,
        "iterations": [CLEAN + step for step in hit], "step_excess_ns": [trouble["removed_ns"][step] for step in hit],
        "communicators": [],
    }  # fmt: skip
