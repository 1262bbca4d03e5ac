"""What all ranks lose alike. In: attribute.bottleneck and host_need. Out: sentences for the verdict.

Idea: a rank is late beside others only, so that what each of them loses in every step delays nobody, and is lost all
the same: it leads a verdict that names no culprit, and is told beside a finding.
Not handled: kernels below the peak of their device (attribute.bound says it), and waits for other ranks, which have an
owner.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traceforge.attribute.bound_words import NEXT_STEPS
from traceforge.attribute.host_text import HostBound, needed_by_hosts
from traceforge.attribute.late_launch import late_launches, phrase_of
from traceforge.attribute.stage_text import main_parts_of_bubble
from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share

_TRANSFERS, _BUBBLES = "communication_bound", "pipeline_bubble"

# The largest part of each kind that every rank has nearly as much of as the mean rank.
_ALIKE = f"""
WITH part AS (
  SELECT run_id, rank, IF(bound = 'communication_at_line_rate', '{_TRANSFERS}', bound) AS bound, SUM(share) AS share
  FROM attribute.bottleneck
  GROUP BY ALL
),
least AS (
  SELECT run_id, bound, MIN(share) AS share, COUNT(*) AS ranks
  FROM part
  WHERE rank IS NOT NULL
  GROUP BY run_id, bound
),
recorded AS (
  SELECT run_id, COUNT(DISTINCT rank) AS ranks FROM part GROUP BY run_id
)
SELECT job.run_id, job.bound, job.share
FROM part AS job
JOIN least USING (run_id, bound)
JOIN recorded USING (run_id, ranks)
WHERE job.rank IS NULL AND job.share >= $1 AND least.share >= $2 * job.share AND job.bound NOT IN (
  'ideal', 'compute_bound', 'memory_bound', 'unmodelled_kernels', 'host_compute', 'imbalance_bound', 'stagger'
)
ORDER BY job.run_id, job.share DESC, job.bound
"""

State = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CommonLoss:
    """What all ranks of a run lose.

    Attributes:
        bound: which part, as in attribute.bottleneck.
        phrase: what happens meanwhile, as in `the device is idle while the host loads data`.
        share: of the mean iteration.
    """

    bound: str
    phrase: str
    share: float


def common_losses(store: Store) -> dict[int, list[CommonLoss]]:
    """By run what all its ranks lose alike, if that is much, largest first."""
    found: dict[int, list[CommonLoss]] = {}
    for run_id, bound, share in store.rows(_ALIKE, [thresholds.COMMON_LOSS_SHARE, thresholds.ALIKE_PART]):
        late = store.once(late_launches, run_id) if bound == "launch_bound" else None
        found.setdefault(run_id, []).append(CommonLoss(bound, phrase_of(bound, late), share))
    return found


def loses_in_common(state: State) -> bool:
    """Whether all ranks lose much alike, or their hosts set the pace."""
    return bool(state["losses"]) or state["host_bound"] is not None


def headline_of_loss(state: State, usual: str) -> str:
    """What all ranks lose, before what is usually said of a run without a culprit."""
    hosts: HostBound | None = state["host_bound"]
    recorded = "All ranks recorded" if state["state"] == "partly_seen" else "All ranks"
    first = f"{needed_by_hosts(hosts)}." if hosts else _of_loss(state["losses"][0], state)
    return f"{recorded} alike: {first} {usual.replace('Nothing significant', 'Nothing else is significant', 1)}"


def loss_beside_finding(state: State) -> str:
    """What all ranks lose beside what one of them costs; empty where that is little."""
    # What is said of communication and of bubbles stands elsewhere.
    others = [one for one in state["losses"] if one.bound not in (_TRANSFERS, _BUBBLES)]
    if not others or state["state"] != "finding" or state["finding_subject"] == "job":
        return ""
    return f"Beside that, all ranks alike: {_of_loss(others[0], state)}"


def step_of_bubbles(state: State) -> str:
    """What to do about bubbles that lead the verdict; empty where others do, or what bounds the job says so already."""
    if state["host_bound"] is not None or not state["losses"] or state["losses"][0].bound != _BUBBLES:
        return ""
    step = NEXT_STEPS[_BUBBLES]
    return "" if step in (state["bound_step"] or "") else step


def _of_loss(loss: CommonLoss, state: State) -> str:
    mostly = f" ({main_parts_of_bubble(state)})" if loss.bound == _BUBBLES and state["bubble_ns"] else ""
    return f"for {format_share(loss.share)} of each {format_ns(state['duration_ns'])} step {loss.phrase}{mostly}."
