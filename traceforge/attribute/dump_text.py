"""What flight recorder dumps say in the verdict of a run that they do not decide alone. In: a verdict's state and row.

Out: what changes in its words. Idea: a job that hangs is told of first, whatever its timeline shows; dumps without a
rank are asked for by name. Not handled: hangs that may be a moment of a job that runs, which their section tells of.
"""

from collections.abc import Mapping
from typing import Any


def of_hang_beside(state: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, object]:
    """A hang before what the timeline shows; nothing where there is none, or no timeline."""
    if not state["is_sure_hang"] or state["state"] == "hang":
        return {}
    return {
        "headline": f"The job hangs: {state['hang_summary']} In the timeline: {row['headline']}",
        "explanation": f"Of the hang: {state['hang_detail']} Of the timeline: {row['explanation']}",
        "next_step": f"{state['hang_next_step']} {row['next_step'] or ''}".rstrip(),
    }


def of_dumps_without_rank(state: Mapping[str, Any]) -> dict[str, object]:
    """What to do where dumps are all there is, and none says whose it is."""
    if state["state"] != "no_timeline" or not state["dumps"]:
        return {}
    return {
        "headline": "No flight recorder dump of this run says which rank it is of: who waits for whom cannot be known "
        "from this.",
        "next_step": "Name each dump as PyTorch does, with its rank at the end (nccl_trace_rank_3), or say where the "
        "name holds it (--rank-regex).",
    }
