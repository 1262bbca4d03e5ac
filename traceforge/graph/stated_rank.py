"""Traces that are of another rank by what they say. Reads graph.trace and raw.chakra_*; fills graph.stated_rank.

A file that is named after rank 0 may hold the trace of rank 1: its place among the members of a group, the ends of its
messages or its process id tell. Only what all its calls agree on counts. Nothing is moved: it is said.
Not handled: groups whose members no file lists, unless all ranks of the run are in them.
"""

import polars as pl

from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_STATED = """
WITH job AS (
  SELECT run_id, COUNT(DISTINCT rank) AS ranks, MAX(rank) AS last FROM graph.trace GROUP BY run_id
),
call AS (
  SELECT t.run_id, t.source_id, t.part, t.rank, c.collective_name, c.source_rank, c.destination_rank, c.group_rank,
    CASE
      WHEN LEN(g.ranks) > 0 THEN LIST_SORT(g.ranks)
      WHEN COALESCE(g.size, c.group_size) = j.ranks AND j.last = j.ranks - 1 THEN RANGE(j.ranks)
    END AS members
  FROM graph.trace AS t
  JOIN job AS j USING (run_id)
  JOIN raw.chakra_communication AS c USING (source_id, part)
  LEFT JOIN raw.chakra_process_group AS g
    ON g.source_id = c.source_id AND g.part = c.part AND g.process_group_name = c.process_group_name
  WHERE t.rank IS NOT NULL AND NOT c.is_wait
),
stated AS (
  SELECT run_id, source_id, part, rank, members[group_rank + 1] AS stated_rank, 'group' AS basis
  FROM call
  WHERE group_rank >= 0 AND LEN(members) > 1
  UNION ALL
  SELECT run_id, source_id, part, rank, CASE WHEN collective_name = 'send' THEN source_rank ELSE destination_rank END,
    'message'
  FROM call
  WHERE collective_name IN ('send', 'recv') AND source_rank <> destination_rank
)
SELECT run_id, source_id, part, rank, MIN(stated_rank) AS stated_rank, basis, COUNT(*) AS call_count
FROM stated
WHERE stated_rank IS NOT NULL
GROUP BY run_id, source_id, part, rank, basis
HAVING MIN(stated_rank) = MAX(stated_rank) AND MIN(stated_rank) <> rank
UNION ALL
SELECT run_id, source_id, part, rank, MIN(other), 'process_id', NULL
FROM (
  SELECT DISTINCT t.run_id, t.source_id, t.part, t.rank, o.rank AS other
  FROM graph.trace AS t
  JOIN raw.chakra_file AS f USING (source_id, part)
  JOIN graph.trace AS o ON o.run_id = t.run_id
  JOIN raw.track AS k ON k.source_id = o.timeline_source_id AND TRY_CAST(k.process AS BIGINT) = f.process_id
  WHERE t.timeline_source_id IS NOT NULL AND t.rank IS NOT NULL
)
GROUP BY run_id, source_id, part, rank
HAVING COUNT(*) = 1 AND MIN(other) <> rank
ORDER BY run_id, rank, source_id, part, basis
"""
_SAID = {
    "group": "its place in its process groups is that of rank {}",
    "message": "its messages are those of rank {}",
    "process_id": "its process is that of the timeline of rank {}",
}


def rows(store: Store) -> pl.DataFrame:
    """One row a trace, rank and basis; adds an issue for each trace."""
    found = store.query(_STATED)
    paths = dict(store.rows("SELECT source_id, path FROM meta.source"))
    for row in found.unique(["source_id", "part"], maintain_order=True).to_dicts():
        said = _SAID[row["basis"]].format(row["stated_rank"])
        detail = (
            f"the file is taken for rank {row['rank']}, but {said}; files may be swapped. Name them by their own rank"
        )
        issue = Issue("rank_contradicted", "warning", 1, paths[row["source_id"]], detail)
        store.append("meta.issue", issue_rows(row["run_id"], row["source_id"], "graph", [issue]))
    return found
