"""Members of process groups of which no file is. Reads graph.communication and align.rank; fills graph.absent_rank.

Not handled: groups whose members no trace lists.
"""

import polars as pl

from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows
from traceforge.units import listed, plural

_MOST_RANGES = 8
_ABSENT = """
WITH member AS (
  SELECT run_id, process_group, UNNEST(members) AS rank
  FROM (SELECT DISTINCT run_id, process_group, members FROM graph.communication WHERE LIST_CONTAINS(members, rank))
)
SELECT m.run_id, m.rank, COUNT(DISTINCT m.process_group) AS group_count
FROM member AS m
WHERE NOT EXISTS (FROM graph.trace AS t WHERE t.run_id = m.run_id AND t.rank = m.rank)
  AND NOT EXISTS (FROM align.rank AS r WHERE r.run_id = m.run_id AND r.rank = m.rank)
GROUP BY m.run_id, m.rank
ORDER BY m.run_id, m.rank
"""


def rows(store: Store) -> pl.DataFrame:
    """One row a rank; adds an issue for each run that names them."""
    found = store.query(_ABSENT)
    for (run_id,), own in found.group_by("run_id", maintain_order=True):
        ranks = own["rank"].to_list()
        said = f"process groups list {plural(len(ranks), 'rank')} without a file: {ranges_said(ranks)}"
        detail = f"{said}. Nothing is known of them. Give their files, too"
        issue = Issue("members_without_file", "warning", len(ranks), f"rank {ranks[0]}", detail)
        store.append("meta.issue", issue_rows(int(str(run_id)), None, "graph", [issue]))
    return found


def ranges_said(ranks: list[int]) -> str:
    """Ranks in order, neighbours as one range, such as `4-7 and 9`."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    shown = [f"{first}-{last}" if last > first else str(first) for first, last in runs]
    more = [f"{len(shown) - _MOST_RANGES} more ranges"] if len(shown) > _MOST_RANGES else []
    return listed([*shown[:_MOST_RANGES], *more])
