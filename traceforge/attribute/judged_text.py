"""How much was judged, in words. In: the state of a run. Out: a sentence on its iterations and what they take."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share

State = Mapping[str, Any]

_OF_ONE_ITERATION = "the pace of its median rank"
_ON_TIME = MappingProxyType(
    {
        "median": "the job's own typical pace",
        "first_quartile": "the job's good pace, the first quartile of its durations",
        "best_rank": "the pace of the rank with the least work",
    }
)


def of_judged(state: State) -> str:
    """The iterations judged, how long they take, and how much of it is delay."""
    one, left_out = state["iterations"] == 1, state["iterations"] < state["recorded_iterations"]
    judged = "The one iteration judged takes" if one else f"The {state['iterations']} iterations judged take"
    if left_out:
        judged = (
            f"{state['iterations']} of {state['recorded_iterations']} iterations were judged (the others are not "
            f"whole, or not comparable); {'it takes' if one else 'they take'}"
        )
    duration = f"{format_ns(state['duration_ns'])}{'' if one else ' on average'}{_overlap(state)}"
    share = format_share(abs(state["excess_ns"]) / state["duration_ns"])
    excess = f"{format_ns(abs(state['excess_ns']))} ({share}) {'less' if state['excess_ns'] < 0 else 'more'}"
    excess = excess if state["excess_ns"] else "no more"
    # One iteration shows no typical pace of its own: each rank is held against its peers.
    on_time = _OF_ONE_ITERATION if one and state["reference"] == "median" else _ON_TIME[state["reference"]]
    return f"{judged} {duration}, {excess} than at {on_time}."


def _overlap(state: State) -> str:
    """How often an iteration begins, where ranks begin the next one while others are in the last one."""
    every_ns = state["every_ns"]
    is_apart = every_ns is None or every_ns >= thresholds.OVERLAPPING_SHARE * state["duration_ns"]
    return "" if is_apart else f" (they overlap: one begins every {format_ns(every_ns)})"
