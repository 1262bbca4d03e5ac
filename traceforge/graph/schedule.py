"""When everything happens, given what depends on what. In: durations and dependencies. Out: starts and ends.

Idea: a node starts once all it depends on has ended, each plus a lag of its own; without dependencies it starts at its
release. Lags are what the measured times leave: the dependency that held a node up longest keeps all of it, so that
measured durations give measured times back; the others keep no more than is usual for their kind.
Not handled: limits on resources other than those that dependencies state.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceforge.graph.operation_matching import Int64s
from traceforge.thresholds import graph as thresholds

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Edges:
    """Dependencies; one element each.

    Attributes:
        begin, end: places of the nodes.
        lag_ns: from the end of the one to the earliest start of the other; may be negative.
    """

    begin: Int64s
    end: Int64s
    lag_ns: Int64s


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times by node, ns."""

    start_ns: Int64s
    end_ns: Int64s

    @property
    def span_ns(self) -> int:
        """From the first start to the last end."""
        return int(self.end_ns.max() - self.start_ns.min()) if len(self.end_ns) else 0


def schedule(duration_ns: Int64s, release_ns: Int64s, edges: Edges) -> Schedule:
    """Earliest times. Nodes must be in an order in which each comes after what it depends on.

    Args:
        duration_ns: by node.
        release_ns: earliest start of nodes that depend on nothing; not used for others.
        edges: each from a lower to a higher place.
    """
    by_end = np.argsort(edges.end, kind="stable")
    begins, lags = edges.begin[by_end].tolist(), edges.lag_ns[by_end].tolist()
    firsts = np.searchsorted(edges.end[by_end], np.arange(len(duration_ns) + 1)).tolist()
    starts, ends = release_ns.tolist(), [0] * len(duration_ns)
    for place, duration in enumerate(duration_ns.tolist()):
        first, last = firsts[place], firsts[place + 1]
        if first < last:
            starts[place] = max([ends[begins[edge]] + lags[edge] for edge in range(first, last)])
        ends[place] = starts[place] + duration
    return Schedule(np.array(starts, np.int64), np.array(ends, np.int64))


def calibrated(start_ns: Int64s, end_ns: Int64s, begin: Int64s, end: Int64s, kind: Int64s) -> Edges:
    """Dependencies with the lags that measured times leave.

    Args:
        start_ns, end_ns: measured, by node.
        begin, end: places of the nodes of each dependency.
        kind: number of each dependency's kind; usual lags are taken by kind.
    """
    slack = start_ns[end] - end_ns[begin]
    tightest = np.full(len(start_ns), np.iinfo(np.int64).max)
    np.minimum.at(tightest, end, slack)
    holds = slack == tightest[end]
    lag = slack.copy()
    for number in np.unique(kind).tolist():
        tight, loose = (kind == number) & holds, (kind == number) & ~holds
        usual = np.quantile(slack[tight], thresholds.USUAL_LAG_QUANTILE, method="lower") if tight.any() else 0
        lag[loose] = np.minimum(slack[loose], usual)
    return Edges(begin, end, lag)


def topological_order(count: int, begin: Int64s, end: Int64s) -> tuple[Int64s, int]:
    """Nodes so that each comes after what it depends on, and how many are left out because they form a cycle."""
    missing = np.bincount(end, minlength=count)
    by_begin = np.argsort(begin, kind="stable")
    followers = end[by_begin].tolist()
    firsts = np.searchsorted(begin[by_begin], np.arange(count + 1)).tolist()
    left = missing.tolist()
    order = np.flatnonzero(missing == 0).tolist()
    for place in order:
        for edge in range(firsts[place], firsts[place + 1]):
            left[followers[edge]] -= 1
            if not left[followers[edge]]:
                order.append(followers[edge])
    return np.array(order, np.int64), count - len(order)
