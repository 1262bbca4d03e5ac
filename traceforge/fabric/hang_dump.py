"""The dump used for each rank. Reads meta.source and raw.flight_recorder_*; fills fabric.hang_dump.

Idea: a dump counts only if its rank is known and is a member of every group that the dump describes; of several dumps
of one rank the one with the latest call is used. Not handled: dumps of two jobs in one folder.
"""

import polars as pl

from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_DUMPS = """
WITH latest AS (
  SELECT source_id, MAX(raw_created_ns) AS latest_ns FROM raw.flight_recorder_entry GROUP BY source_id
),
others AS (
  SELECT g.source_id, COUNT(*) AS group_count
  FROM raw.flight_recorder_group AS g
  JOIN meta.source AS s USING (source_id)
  WHERE NOT LIST_CONTAINS(TRY_CAST(g.ranks AS INTEGER[]), s.rank)
  GROUP BY g.source_id
)
SELECT s.run_id, s.rank, s.source_id, s.path, COALESCE(o.group_count, 0) AS groups_of_others
FROM meta.source AS s
LEFT JOIN latest AS l USING (source_id)
LEFT JOIN others AS o USING (source_id)
-- A dump without calls still tells how far its rank got.
WHERE s.kind = 'flight_recorder' AND s.status IN ('used', 'empty')
ORDER BY s.run_id, s.rank, l.latest_ns DESC NULLS LAST, s.source_id
"""

_LEFT_OUT = {
    "hang_rank_unknown": "flight recorder dumps whose rank neither their groups nor their names state were left out; "
    "name them as PyTorch does, with the rank at the end",
    "hang_rank_is_no_member": "flight recorder dumps were left out whose file name ends with a rank that is no member "
    "of the groups inside",
    "hang_rank_repeated": "several flight recorder dumps are of one rank; the one with the latest call is used",
}


def rows(store: Store) -> pl.DataFrame:
    """One row a rank; adds an issue for every kind of dump that is left out."""
    dumps = store.query(_DUMPS)
    reasons = (
        pl.when(pl.col("rank").is_null())
        .then(pl.lit("hang_rank_unknown"))
        .when(pl.col("groups_of_others") > 0)
        .then(pl.lit("hang_rank_is_no_member"))
    )
    dumps = dumps.with_columns(code=reasons)
    kept = dumps.filter(pl.col("code").is_null()).unique(["run_id", "rank"], keep="first", maintain_order=True)
    dumps = dumps.with_columns(
        code=pl.when(pl.col("code").is_null() & ~pl.col("source_id").is_in(kept["source_id"].implode()))
        .then(pl.lit("hang_rank_repeated"))
        .otherwise("code")
    )
    left_out = dumps.drop_nulls("code").group_by("run_id", "code", maintain_order=True)
    for (run_id, code), files in left_out:
        issue = Issue(str(code), "warning", files.height, files["path"][0], _LEFT_OUT[str(code)])
        store.append("meta.issue", issue_rows(int(str(run_id)), None, "fabric", [issue]))
    return kept.select("run_id", "rank", "source_id")
