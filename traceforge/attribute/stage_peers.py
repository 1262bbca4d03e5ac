"""Who computes longer than its peers, where nobody's waits can be known. In: timeline.phase, roles. Out: a sentence.

A pipeline of which a rank's file is missing has no iteration that is whole. How long a recorded rank computes is known
all the same, and ranks of one stage do the same work in all replicas. Not handled: whether it delays anybody.
"""

from traceforge.store.database import Store
from traceforge.thresholds import attribute as thresholds
from traceforge.units import format_ns, format_share

# The lower of two middle values, so that of two ranks the faster one is the peer.
_LONGEST = """
WITH computed AS (
  SELECT p.rank, r.stage, p.duration_ns,
    QUANTILE_DISC(p.duration_ns, 0.5) OVER peers AS usual_ns,
    COUNT(*) OVER peers AS ranks
  FROM timeline.phase AS p
  JOIN timeline.role AS r USING (run_id, rank)
  JOIN timeline.iteration AS i USING (run_id, iteration)
  WHERE p.run_id = ? AND p.phase = 'compute' AND r.stage IS NOT NULL AND NOT i.is_warmup AND NOT i.is_partial
  WINDOW peers AS (PARTITION BY p.iteration, r.stage)
)
SELECT
  rank, stage, AVG(duration_ns) AS own_ns, AVG(usual_ns) AS usual_ns, COUNT(*) AS iterations,
  COUNT(*) FILTER (duration_ns >= (1 + ?) * usual_ns) AS longer
FROM computed
WHERE ranks > 1
GROUP BY rank, stage
HAVING COUNT(*) >= ? AND longer >= ? * COUNT(*)
ORDER BY AVG(duration_ns) - AVG(usual_ns) DESC, rank
LIMIT 1
"""


def longest_beside_peers(store: Store, run_id: int) -> str | None:
    """The rank that computes longer than its stage in most iterations; None where there is none, or no peers."""
    limits = [thresholds.AFFECTED_SHARE, thresholds.FEW_ITERATIONS, thresholds.LEADING_SHARE]
    for rank, stage, own_ns, usual_ns, iterations, longer in store.query(_LONGEST, [run_id, *limits]).iter_rows():
        return (
            f"What each rank computes needs no other: rank {rank} computes for {format_ns(own_ns)} an iteration, "
            f"{format_share(own_ns / usual_ns - 1)} longer than is usual in its stage ({stage}), in {longer} of "
            f"{iterations} iterations. Whether it delays the others, these files do not tell."
        )
    return None
