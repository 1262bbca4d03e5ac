"""What ranks that were not recorded mean for a cost. In: coverage of a run, a cost. Out: the cost, and a sentence.

Idea: who comes last of those recorded need not come last of all. Where one of the others comes later still, mending the
finding's ranks saves less, or nothing; no file tells. So the cost is the most that it may be, and its interval reaches
down to zero. Transfers begin when the last rank is there, and are as they are. Not handled: single ranks that are
lacking of many.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from traceforge.attribute.findings.finding_candidate import FindingCandidate
from traceforge.attribute.findings.finding_cost import CostEstimate, FindingCost
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds

# Ranks that nobody who was recorded meets hide nothing: of a tensor-parallel group a job's own timers name one rank.
_MET = """
SELECT ranks, job_ranks
FROM timeline.coverage
WHERE run_id = ? AND complete_collectives < collectives
"""


def has_unseen_ranks(store: Store, run_id: int) -> bool:
    """Whether one that was not recorded may well be later than any that was."""
    return any(_is_partly_seen(*row) for row in store.rows(_MET, [run_id]))


def limited_by_unseen(found: FindingCandidate, cost: FindingCost) -> FindingCost:
    """The cost as the most that it may be; of transfers, and of all that ranks lose in turns, as it is."""
    if found.cause.claims_transfer or found.is_in_turns:
        return cost
    delay, saved = _down_to_zero(cost.delay), _down_to_zero(cost.saved)
    return replace(cost, delay=delay, saved=saved, is_at_most=True)


def sentence_of_unseen(state: Mapping[str, Any]) -> str:
    """That the leading finding may cost less, as a sentence; empty where it does not."""
    if state["state"] != "finding" or not state["finding_is_at_most"]:
        return ""
    return (
        "Ranks of the job were not recorded: if one of them comes later still, mending this saves less, or nothing. "
        "Record all ranks to know."
    )


def _is_partly_seen(ranks: int | None, job_ranks: int | None) -> bool:
    if not ranks or not job_ranks or ranks < 2:
        return False
    return job_ranks - ranks > thresholds.UNSEEN_SHARE * job_ranks


def _down_to_zero(cost: CostEstimate) -> CostEstimate:
    return cost if cost.low_ns is None else replace(cost, low_ns=min(0.0, cost.low_ns))
