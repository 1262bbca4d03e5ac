"""What logs show where iterations show nothing. In: a verdict's state and row. Out: what changes in its words.

Idea: what is wrong in all iterations alike, such as a NIC at a quarter of its speed, stands out of none of them.
Not handled: what it costs, which only a run without it would show.
"""

from collections.abc import Mapping
from typing import Any

from traceforge.units import plural

_SILENT = ("nothing_significant", "partly_seen", "uncertain")


def of_problems_beside(state: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, object]:
    """The first problem of the logs, after a verdict that names nobody; nothing where there is none."""
    if state["state"] not in _SILENT or not state["problems"]:
        return {}
    count = state["problems"]
    shown = "a problem" if count == 1 else f"{plural(count, 'problem')}, the first one"
    return {
        "headline": f"The logs show {shown} that may slow all iterations alike: {state['first_problem']} In the "
        f"iterations: {row['headline']}",
        "next_step": state["first_problem_step"] or row["next_step"],
        "confidence": "low",
    }
