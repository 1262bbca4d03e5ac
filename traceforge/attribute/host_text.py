"""Hosts that set the pace of a job, in words. Reads attribute.host_need, starvation and pace; gives sentences.

Where hosts by themselves need nearly as long as a step lasts, devices wait for one another only because their hosts
come late, each now and then: a faster device or network hardly helps. Not handled: hosts that are held up by a
synchronisation in each step, whose devices stand still for all to see.
"""

from dataclasses import dataclass

from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share

_USUAL = """
WITH starved AS (
  SELECT run_id, CAST(AVG(starved_ns) AS BIGINT) AS starved_ns FROM attribute.starvation GROUP BY run_id
)
SELECT run_id, QUANTILE_DISC(host_ns, 0.5), QUANTILE_DISC(input_ns, 0.5),
  ANY_VALUE(COALESCE(p.every_ns, p.duration_ns)), ANY_VALUE(s.starved_ns)
FROM attribute.host_need
JOIN attribute.pace AS p USING (run_id)
JOIN starved AS s USING (run_id)
GROUP BY run_id
"""


@dataclass(frozen=True, slots=True)
class HostBound:
    """What the usual host needs for the usual step; times in ns.

    Attributes:
        input_ns: of it, to fetch input.
        pace_ns: what an iteration takes of the job's time.
        starved_ns: for how long of it some device lacks work.
    """

    host_ns: int
    input_ns: int
    pace_ns: int
    starved_ns: int

    @property
    def is_pace(self) -> bool:
        """Whether hosts set the pace: they need most of it, and devices lack work meanwhile."""
        is_most = self.host_ns >= thresholds.HOST_BOUND_SHARE * self.pace_ns
        return is_most and self.starved_ns >= thresholds.STARVED_SHARE * self.pace_ns

    @property
    def is_input(self) -> bool:
        """Whether most of it is fetching input."""
        return 2 * self.input_ns >= self.host_ns


def host_bounds(store: Store) -> dict[int, HostBound]:
    """By run what its hosts need, where they set its pace."""
    found = {run_id: HostBound(*own) for run_id, *own in store.rows(_USUAL)}
    return {run_id: one for run_id, one in found.items() if one.is_pace}


def said_of_hosts(bound: HostBound) -> str:
    """What sets the pace."""
    name = "Input-bound" if bound.is_input else "Host-bound"
    return (
        f"{name}: {needed_by_hosts(bound)}, and no wait for its device shows in it: faster devices or a faster network "
        "would hardly shorten it."
    )


def needed_by_hosts(bound: HostBound) -> str:
    """How much of the pace a host needs."""
    doing = f" ({format_ns(bound.input_ns)} of it to fetch input)" if bound.is_input else " to issue its work"
    needed, share = format_ns(bound.host_ns), format_share(bound.host_ns / bound.pace_ns)
    return f"the usual host needs {needed}{doing}, {share} of the {format_ns(bound.pace_ns)} from one step to the next"


def next_step_of_hosts(bound: HostBound) -> str:
    """What to do about hosts that set the pace."""
    if bound.is_input:
        return "Fetch input faster on all ranks: more workers, prefetch, cheaper decoding, faster storage."
    return (
        "Let hosts issue less, on all ranks: CUDA graphs, torch.compile, fused optimizers, larger batches, less Python "
        "between operations; look at the hosts' clocks and at what else uses their cores."
    )
