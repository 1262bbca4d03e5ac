"""What a verdict of nothing excludes, and what it cannot. In: the state of a run. Out: parts of sentences."""

from collections.abc import Mapping
from typing import Any

from traceforge.attribute.stage_text import is_unbalanced
from traceforge.units import format_ns, format_share, listed

State = Mapping[str, Any]


def seen(state: State) -> str:
    """What would have been found, as far as it is known; kinds of subjects that are seen alike share a clause."""
    sizes = (
        ("rank", state["rank_sight_ns"]),
        ("rank that pauses", state["pause_sight_ns"] if state["is_one_replica"] else None),
        ("host", state["host_sight_ns"]),
        ("episode of slow transfers", state["transfer_sight_ns"]),
    )
    clauses: dict[str, list[str]] = {}
    for what, size_ns in sizes:
        if size_ns is not None:
            size = f"more than {format_ns(size_ns)} ({format_share(size_ns / state['duration_ns'])})"
            clauses.setdefault(size, []).append(f"no {what}")
    if not clauses:
        return (
            ", but nothing is excluded either: these iterations are too few or too uneven to show a delay of any size"
        )
    said = [f"{listed(kinds)} {'' if n else 'costs '}{size}" for n, (size, kinds) in enumerate(clauses.items())]
    more = "".join(f", {one}" for one in said[1:])
    return f": {said[0]} an iteration{more}{_of_one_replica(state)}"


def _of_one_replica(state: State) -> str:
    """Which stages do not show; empty where each has replicas."""
    if not state["is_one_replica"]:
        return ""
    which = "another stage" if is_unbalanced(state) else "a stage"
    return f"; {which} that computes longer in all iterations does not show, as there is one replica of each"


def without_owner(state: State) -> str:
    """Why nobody is accused of what is spread: nobody costs so much, or the run could not show it; may be empty."""
    excluded, sight = seen(state).partition(": ")[2], state["rank_sight_ns"]
    if not is_owner_unknown(state):
        return f"Nobody owns it: {excluded}." if excluded else ""
    size = f"{format_ns(sight)} ({format_share(sight / state['duration_ns'])})"
    return (
        f"Who owns it cannot be told: in so few or so uneven iterations only a rank that costs more than {size} shows."
    )


def is_owner_unknown(state: State) -> bool:
    """Whether one rank could own all that is lost without being found."""
    return state["rank_sight_ns"] is not None and state["rank_sight_ns"] > state["excess_ns"]
