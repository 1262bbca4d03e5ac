"""What logs show where iterations show nothing. Reads fabric.finding. Out: what changes in a verdict's words.

Idea: what is wrong in all iterations alike, such as a NIC at a quarter of its speed, stands out of none of them. A slow
path that may be the best there is, such as sockets, is told where communication bounds the job. Logs of another job say
nothing of this one.
Not handled: what it costs, which only a run without it would show; errors and start-up, which slow no iteration alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from traceforge.store.database import Store
from traceforge.units import plural

LOGS_ALONE = "Logs alone tell how ranks are connected, not how long they wait"
_SILENT = ("nothing_significant", "partly_seen", "uncertain")

# How ranks are connected: it is the same in each iteration.
_LASTING = """
SELECT f.run_id, f.summary, f.next_step
FROM fabric.finding AS f
ANTI JOIN meta.issue AS i ON i.run_id = f.run_id AND i.code = 'nccl_log_other_job'
WHERE f.severity = 'problem' AND f.basis = 'configuration evidence' AND f.mode IN ('fabric_contention', 'gpu_locality')
ORDER BY f.run_id, f.finding_id
"""

# Notices of how bytes travel, of jobs that communication bounds.
_SLOW_PATHS = """
SELECT f.run_id, f.summary, f.next_step
FROM fabric.finding AS f
JOIN attribute.bound AS b ON b.run_id = f.run_id AND b.rank IS NULL AND b.bound = 'communication_bound'
ANTI JOIN meta.issue AS i ON i.run_id = f.run_id AND i.code = 'nccl_log_other_job'
WHERE f.severity = 'notice' AND f.code IN ('socket_fallback', 'p2p_disabled', 'few_channels', 'odd_algorithm')
ORDER BY f.run_id, f.finding_id
"""

Row = Mapping[str, Any]


def lasting_problems(store: Store) -> Mapping[int, Sequence[Row]]:
    """Problems of connections by run, the most important first."""
    return _by_run(store, _LASTING)


def slow_paths(store: Store) -> Mapping[int, Sequence[Row]]:
    """Slow ways of bytes that may be intended, by run that communication bounds."""
    return _by_run(store, _SLOW_PATHS)


def _by_run(store: Store, query: str) -> Mapping[int, Sequence[Row]]:
    found: dict[int, list[Row]] = {}
    for row in store.records(query):
        found.setdefault(row["run_id"], []).append(row)
    return found


def of_logs_alone(state: Row) -> str:
    """What logs show where there is no timeline; that they show nothing says of how many connections."""
    if not state["problems"]:
        if state["first_notice"] is None:
            if not state["connections"]:
                return "They show no connection between ranks, and no problem in what else they hold."
            shown = plural(state["connections"], "connection")
            return f"They show no problem of configuration in {shown} between ranks; see the section on the fabric."
        return f"What they show may be intended, or a problem: {state['first_notice']} See the section on the fabric."
    return f"{LOGS_ALONE}: what {'it costs' if state['problems'] == 1 else 'these cost'} cannot be known from this."


def of_problems_beside(problems: Sequence[Row], state: Row, row: Row) -> dict[str, object]:
    """The first problem, before a verdict that names nobody; nothing where there is none.

    Args:
        problems: of the run, from `lasting_problems`.
    """
    if state["state"] not in _SILENT or not problems:
        return {}
    shown = "a problem" if len(problems) == 1 else f"{plural(len(problems), 'problem')}, the first one"
    return {
        "headline": f"The logs show {shown} that may slow all iterations alike: {problems[0]['summary']} In the "
        f"iterations: {row['headline']}",
        "next_step": problems[0]["next_step"],
        "confidence": "low",
    }


def of_slow_paths_beside(paths: Sequence[Row], state: Row, row: Row) -> dict[str, object]:
    """The first slow path, before a verdict that names nobody although communication bounds the job.

    Args:
        paths: of the run, from `slow_paths`.
    """
    if state["state"] not in _SILENT or not paths:
        return {}
    return {
        "headline": f"Communication bounds the job, and the logs show what may slow it: {paths[0]['summary']} In the "
        f"iterations: {row['headline']}",
        "next_step": paths[0]["next_step"],
        "confidence": "low",
    }
