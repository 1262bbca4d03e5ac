"""What a verdict says of links that are always slow. In: timeline.link_load. Out: the slowest, and sentences.

Messages between two hosts, or two devices of one host, that always take far longer than those of as many bytes between
others are no loss against the run's own pace, and still what stages wait for. A slow NIC, a slow cable and a longer way
look alike in one run, so nobody is accused. Not handled: collectives, and a single pair of hosts, which has no other to
be held against (`lone_link`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share

_LOADS = """
SELECT run_id, low_host, high_host, low_rank, high_rank, exchanges_per_iteration, transfer_ns, quick_transfer_ns,
  usual_transfer_ns
FROM timeline.link_load
WHERE usual_transfer_ns IS NOT NULL
ORDER BY run_id, low_host, high_host, low_rank, high_rank
"""

_OTHER_HOSTS = "other hosts"

Load = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UnevenLink:
    """Messages that take longer than those of as many bytes between others; times in ns.

    Attributes:
        between: the hosts or ranks, in words.
        extra_ns: what one rank's exchanges take longer, an iteration: at most so much would be saved.
        others: with which they are compared, in words.
    """

    between: str
    transfer_ns: int
    usual_ns: int
    extra_ns: float
    others: str = _OTHER_HOSTS


def uneven_links(store: Store) -> dict[int, UnevenLink]:
    """By run the links that are slow throughout, where there are any."""
    by_run: dict[int, list[Load]] = {}
    for row in store.records(_LOADS):
        by_run.setdefault(row["run_id"], []).append(row)
    found = {run_id: uneven_link(loads) for run_id, loads in by_run.items()}
    return {run_id: link for run_id, link in found.items() if link is not None}


def uneven_link(loads: Sequence[Load]) -> UnevenLink | None:
    """The link, or all links of one host or rank, that are slow against the other pairs of their kind in a run."""
    found = [_of_kind([one for one in loads if _others(one) == others]) for others in sorted(set(map(_others, loads)))]
    return max((link for link in found if link is not None), key=lambda link: link.extra_ns, default=None)


def _of_kind(loads: Sequence[Load]) -> UnevenLink | None:
    slow = [one for one in loads if _is_slow(one)]
    if not slow or len(slow) == len(loads):
        return None
    worst = max(slow, key=_extra_ns)
    times = worst["transfer_ns"], worst["usual_transfer_ns"]
    what, *ends = ends_of(worst)
    for end in sorted(ends):
        own = [one for one in loads if end in ends_of(one)[1:]]
        if len(own) > 1 and len(own) == len(slow) and all(map(_is_slow, own)):
            return UnevenLink(f"to and from {what} {end}", *times, sum(map(_extra_ns, own)), _others(worst))
    return UnevenLink(f"between {what}s {ends[0]} and {ends[1]}", *times, _extra_ns(worst), _others(worst))


def ends_of(load: Load) -> tuple[str, Any, Any]:
    """What is at the ends, and which."""
    if load["low_rank"] is None:
        return "host", load["low_host"], load["high_host"]
    return "rank", load["low_rank"], load["high_rank"]


def _others(load: Load) -> str:
    """Pairs of the same kind, in words."""
    if load["low_rank"] is None:
        return _OTHER_HOSTS
    return "other ranks" if load["low_host"] is None else "other ranks of one host"


def no_more_than_waited(link: UnevenLink | None, state: Mapping[str, Any]) -> UnevenLink | None:
    """A link that costs no more than ranks of a pipeline wait beyond what its schedule makes them, where that is known.

    Messages that move while their receiver still computes hold up nobody.
    """
    if link is None or state["bubble_ns"] is None:
        return link
    waited_ns = max(0.0, state["bubble_ns"] - state["fill_drain_ns"])
    return replace(link, extra_ns=min(link.extra_ns, waited_ns))


def costs_much(link: UnevenLink | None, duration_ns: float) -> bool:
    """Whether a link may cost so much of an iteration that it is told."""
    return link is not None and link.extra_ns >= thresholds.UNBALANCED_SAVING_SHARE * duration_ns


def headline_of_link(link: UnevenLink, duration_ns: float) -> str:
    """Which messages are slow, and what they can cost."""
    return (
        f"Messages {link.between} take {format_ns(link.transfer_ns)}, those of as many bytes between {link.others} "
        f"{format_ns(link.usual_ns)}, by a longer way or by a fault, which one run cannot tell: were they as fast, "
        f"an iteration would be up to {format_ns(link.extra_ns)} ({format_share(link.extra_ns / duration_ns)}) shorter."
    )


def next_step_of_link(link: UnevenLink) -> str:
    """What to do about a link that is always slow."""
    if link.others != _OTHER_HOSTS:
        return (
            f"See whether messages {link.between} have a longer way by design (another socket, PCIe in the place of "
            "NVLink: nvidia-smi topo -m). If not, see which way NCCL takes (NCCL_DEBUG=INFO) and whether links work at "
            "full width and speed, and compare with an earlier run."
        )
    return (
        f"See whether messages {link.between} have a longer way by design (another rack, another rail). If not, look "
        "at speed and errors of NICs, cables and switch ports there (ethtool -S, perfquery), and compare with an "
        "earlier run."
    )


def _is_slow(load: Load) -> bool:
    return bool(load["quick_transfer_ns"] >= thresholds.UNEVEN_LINK_FACTOR * load["usual_transfer_ns"])


def _extra_ns(load: Load) -> float:
    return float(load["exchanges_per_iteration"] * (load["transfer_ns"] - load["usual_transfer_ns"]))
