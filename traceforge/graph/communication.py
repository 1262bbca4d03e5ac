"""Recorded communication of all ranks, comparable. Reads raw.chakra_*, graph.link; fills graph.communication.

One trace stands for a rank: PyTorch's own rather than a converted one. A process group is known by its name; where old
traces hold only a pointer, which differs between processes, by the order in which a rank first uses its groups.
Members are those that the trace lists, or that start and stride state. A trace that does not fit the timeline of its
rank may be of another job, and is left out (issue link_refused).
Not handled: groups of one rank (left out).
"""

import polars as pl

from traceforge.align.collective_names import operation_of
from traceforge.store.database import Store

_CALLS = """
WITH linked AS (
  SELECT run_id, source_id, part, BOOL_OR(is_accepted) AS is_linked
  FROM graph.link
  GROUP BY run_id, source_id, part
  -- A timeline that hardly shows the host tells nothing of a trace.
  HAVING is_linked OR MAX(LEAST(operation_count, event_count)) >= (
    SELECT value FROM meta.threshold WHERE name = 'graph.FEWEST_OPERATIONS_OF_A_JOB'
  )
),
-- Runs with timelines of which no trace fits any: all traces are of another job, or another time.
foreign_run AS (
  SELECT run_id FROM linked GROUP BY run_id HAVING NOT BOOL_OR(is_linked)
),
chosen AS (
  SELECT t.run_id, t.rank, t.source_id, t.part
  FROM graph.trace AS t
  LEFT JOIN linked AS l USING (run_id, source_id, part)
  WHERE t.rank IS NOT NULL AND COALESCE(l.is_linked, true) AND t.run_id NOT IN (SELECT run_id FROM foreign_run)
  QUALIFY ROW_NUMBER() OVER (
    PARTITION BY run_id, rank
    ORDER BY LIST_POSITION(['pytorch_et', 'pytorch_et_plus', 'chakra_et'], format) NULLS LAST, source_id, part
  ) = 1
),
job AS (
  SELECT run_id, COUNT(DISTINCT rank) AS ranks FROM chosen GROUP BY run_id
)
SELECT t.run_id, t.rank, t.source_id, c.position, c.node_id, c.collective_name, c.process_group_name AS name,
  c.process_group_handle AS handle, c.group_size, c.sequence, c.dtype, c.in_bytes, c.out_bytes, c.in_split_sizes,
  c.out_split_sizes, c.source_rank, c.destination_rank, j.ranks AS job_ranks,
  CASE
    WHEN LEN(g.ranks) > 0 THEN g.ranks
    WHEN g.size IS NOT NULL AND g.ranks IS NOT NULL THEN RANGE(g.size)
    WHEN c.global_rank_stride > 0 AND c.group_size < 100000
      THEN LIST_TRANSFORM(RANGE(c.group_size), LAMBDA k: c.global_rank_start + k * c.global_rank_stride)
    WHEN c.group_size = j.ranks THEN RANGE(c.group_size)
  END AS members,
  c.origin = 'attributes' AS is_written,
  (SELECT COUNT(*) FROM raw.chakra_process_group AS o
    WHERE o.source_id = t.source_id AND o.part = t.part AND COALESCE(o.size, 2) > 1) AS listed_groups
FROM chosen AS t
JOIN job AS j USING (run_id)
JOIN raw.chakra_communication AS c USING (source_id, part)
LEFT JOIN raw.chakra_process_group AS g
  ON g.source_id = c.source_id AND g.part = c.part AND g.process_group_name = c.process_group_name
WHERE NOT c.is_wait AND c.origin <> 'kernel' AND COALESCE(c.group_size, 2) > 1
  -- A host operation that does not say what it does launches a call of the device, which does.
  AND (c.collective_name IS NOT NULL OR c.origin = 'attributes' AND NOT COALESCE((
    SELECT BOOL_OR(n.is_cpu) FROM raw.chakra_node AS n WHERE n.source_id = c.source_id AND n.position = c.position
  ), false))
QUALIFY ROW_NUMBER() OVER (PARTITION BY c.source_id, c.position ORDER BY g.position) = 1
ORDER BY t.run_id, t.rank, CASE WHEN is_written THEN c.position ELSE c.node_id END, c.position
"""
_PLACE = ("run_id", "rank")
_SPLITS = ("in_split_sizes", "out_split_sizes")
_COLUMNS = (
    *_PLACE, "source_id", "position", "node_id", "process_group", "members", "ordinal", "sequence", "op", "dtype",
    "in_bytes", "out_bytes", *_SPLITS, "source_rank", "destination_rank",
)  # fmt: skip


def rows(store: Store) -> pl.DataFrame:
    """One row a call."""
    if not store.rows("SELECT 1 FROM raw.chakra_communication LIMIT 1"):
        return pl.DataFrame()  # most jobs have no execution traces
    calls = store.query(_CALLS)
    if calls.is_empty():
        return calls
    names = calls["collective_name"].drop_nulls().unique().to_list()
    operations = {name: _operation(name) for name in names}
    dtype = pl.col("dtype").str.to_lowercase().str.replace(r"^.*::", "")
    empty = [pl.when(pl.col(name).list.len() > 0).then(pl.col(name)).alias(name) for name in _SPLITS]
    found = (
        _with_groups(calls)
        .with_columns(
            *empty,
            op=pl.col("collective_name").replace_strict(operations, default=None, return_dtype=pl.String),
            dtype=dtype,
        )
        .with_columns(ordinal=pl.int_range(pl.len()).over(*_PLACE, "process_group"))
    )
    return found.select(_COLUMNS)


def _operation(name: str) -> str | None:
    plain = name.lower().rstrip("_")
    return plain if plain in ("send", "recv") else operation_of(plain)


def _with_groups(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with `process_group`: name, number of the handle, or the only group there is."""
    first = pl.col("position").rank("dense").over(*_PLACE).min().over(*_PLACE, "handle")
    numbered = calls.with_columns(first=pl.when(pl.col("handle").is_not_null()).then(first))
    number = (pl.col("first").rank("dense").over(*_PLACE) - 1).cast(pl.Int64)
    return numbered.with_columns(
        process_group=pl.when(pl.col("name").is_not_null())
        .then(pl.col("name"))
        .when(pl.col("handle").is_not_null())
        .then(pl.format("group {} of {} ranks", number, "group_size"))
        .when((pl.col("listed_groups") == 1) | (pl.col("is_written") & (pl.col("listed_groups") == 0)))
        .then(pl.lit("all"))
    )
