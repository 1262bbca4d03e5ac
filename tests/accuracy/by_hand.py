"""What an expert reads off the traces by hand. In: a store. Out: the rank that each simple reading names.

The rank with the least time in communication kernels (the others wait for it there), the one that computes most, the
one that is most often the last to start collectives on the clocks as they are, and the one that then waits least in
sum. The last two are how TraceLens' summary of stragglers ranks them (2026; it is in no package index, so it is its
rule that is compared, and not the program).
"""

from tests.stories import Run
from traceforge.store.database import Store

_LEAST_COMMUNICATION = """
SELECT rank FROM align.call GROUP BY rank ORDER BY SUM(raw_end_ns - raw_arrival_ns), rank LIMIT 1
"""
_MOST_COMPUTE = """
SELECT r.rank
FROM align.rank AS r
JOIN raw.event AS e USING (source_id)
WHERE e.category = 'kernel' AND NOT STARTS_WITH(e.name, 'nccl')
GROUP BY r.rank ORDER BY SUM(e.duration_ns) DESC, r.rank LIMIT 1
"""
_LAST_ON_RAW_CLOCKS = """
WITH last AS (
  SELECT m.collective_id, ARG_MAX(m.rank, c.raw_arrival_ns) AS rank
  FROM align.match AS m
  JOIN align.call AS c USING (run_id, rank, call_id)
  GROUP BY m.collective_id
)
SELECT rank FROM last GROUP BY rank ORDER BY COUNT(*) DESC, rank LIMIT 1
"""
_LEAST_WAIT_ON_RAW_CLOCKS = """
WITH waited AS (
  SELECT m.rank, MAX(c.raw_arrival_ns) OVER (PARTITION BY m.collective_id) - c.raw_arrival_ns AS wait_ns
  FROM align.match AS m
  JOIN align.call AS c USING (run_id, rank, call_id)
)
SELECT rank FROM waited GROUP BY rank ORDER BY SUM(wait_ns), rank LIMIT 1
"""
READINGS = {
    "least communication": _LEAST_COMMUNICATION,
    "most compute": _MOST_COMPUTE,
    "last on raw clocks": _LAST_ON_RAW_CLOCKS,
    "least wait on raw clocks": _LEAST_WAIT_ON_RAW_CLOCKS,
}


def readings(store: Store | Run) -> dict[str, int | None]:
    """Rank named by each reading."""
    answers = {}
    for name, query in READINGS.items():
        rows = store.query(query).rows()
        answers[name] = int(rows[0][0]) if rows else None
    return answers
