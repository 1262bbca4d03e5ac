"""What a verdict says of messages that no others are like. In: timeline.link_load. Out: the longest, and sentences.

Where a pipeline crosses from one host to another in one place, nothing in the run tells whether that is slow; how long
messages take, and at what rate, is said where ranks wait for them, so that it can be held against what the link can do.
Not handled: which part of the wait for messages is theirs alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traceforge.attribute.link_text import ends_of
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_bytes, format_ns

# Of each run the pair whose messages take longest in all, if no others are like them.
_LONGEST = """
SELECT run_id, low_host, high_host, low_rank, high_rank, size_bytes, transfer_ns, usual_transfer_ns
FROM timeline.link_load
QUALIFY ROW_NUMBER() OVER (
  PARTITION BY run_id ORDER BY exchanges_per_iteration * transfer_ns DESC, low_host, high_host, low_rank, high_rank
) = 1
ORDER BY run_id
"""

State = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoneLink:
    """Messages that no others are like.

    Attributes:
        between: the hosts or ranks, in words.
        size_bytes: of one message.
        transfer_ns: what one takes once both ends are ready.
    """

    between: str
    size_bytes: int
    transfer_ns: int

    @property
    def rate(self) -> str:
        """Bytes a second, in words."""
        return f"{format_bytes(round(self.size_bytes * 1e9 / self.transfer_ns))}/s"


def lone_links(store: Store) -> dict[int, LoneLink]:
    """The longest messages of each run, where no others are like them."""
    found = {}
    for load in store.records(_LONGEST):
        if load["usual_transfer_ns"] is None and load["transfer_ns"]:
            what, *ends = ends_of(load)
            between = f"between {what}s {ends[0]} and {ends[1]}"
            found[load["run_id"]] = LoneLink(between, load["size_bytes"], load["transfer_ns"])
    return found


def waits_for_lone_link(state: State) -> bool:
    """Whether ranks of a pipeline wait much for messages of which the longest have no peer."""
    if state["lone_link"] is None or state["bubble_ns"] is None:
        return False
    return bool(state["message_ns"] >= thresholds.UNBALANCED_SAVING_SHARE * state["pipeline_iteration_ns"])


def of_lone_link(state: State) -> str:
    """How long the longest messages of a pipeline take that no others are like; empty where nobody waits for them."""
    if not waits_for_lone_link(state):
        return ""
    link: LoneLink = state["lone_link"]
    return (
        f"Messages {link.between} take {format_ns(link.transfer_ns)} for {format_bytes(link.size_bytes)} "
        f"({link.rate}): no others are like them, so that one run cannot tell whether that is slow."
    )


def next_step_of_lone_link(state: State) -> str:
    """What to hold the longest messages of a pipeline against; empty where nobody waits for them."""
    if not waits_for_lone_link(state):
        return ""
    link: LoneLink = state["lone_link"]
    return f"Hold the {link.rate} of messages {link.between} against what the link can do (nccl-tests: sendrecv_perf)."
