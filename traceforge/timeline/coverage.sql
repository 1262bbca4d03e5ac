-- How much of each run was recorded: one row a run. What follows from a part must not pass as the whole.
-- Scope: run
CREATE OR REPLACE TABLE timeline.coverage (
  -- Joins meta.run.run_id.
  run_id,
  -- Ranks whose traces are here; a truncated file without any whole step counts as none.
  ranks,
  -- Ranks whose file is truncated.
  truncated_ranks,
  -- Ranks that the job has, as far as files and process groups say; NULL where only one was recorded and nothing says it.
  job_ranks,
  -- Collectives in judged iterations.
  collectives,
  -- Of these, those of which every member was recorded.
  complete_collectives,
  -- Share of the ranks' time in judged iterations in which nothing but communication runs and nobody knows whether it
  -- waits or transfers (phase communication), 0..1; NULL without such iterations.
  unsplit_share,
  -- True where that share is so small that waiting and transfer count as measured; NULL likewise.
  is_split
) AS
WITH recorded AS (
  SELECT run_id,
    COUNT(*) FILTER (
      raw_intact_ns IS NULL
      OR EXISTS (SELECT 1 FROM align.step AS s WHERE s.run_id = r.run_id AND s.rank = r.rank)
    ) AS ranks,
    COUNT(raw_intact_ns) AS truncated_ranks, MAX(rank) + 1 AS least_ranks
  FROM align.rank AS r
  GROUP BY run_id
),
stated AS (
  SELECT run_id, MAX(member) + 1 AS least_ranks, COALESCE(BOOL_OR(origin = 'unknown'), false) AS is_unknown
  FROM (SELECT run_id, origin, UNNEST(ranks) AS member FROM align.communicator)
  GROUP BY run_id
),
judged AS (
  SELECT run_id, iteration FROM timeline.iteration WHERE NOT is_warmup AND NOT is_partial
),
met AS (
  SELECT run_id, COUNT(*) AS collectives, COUNT(*) FILTER (complete) AS complete_collectives
  FROM timeline.collective
  SEMI JOIN judged USING (run_id, iteration)
  GROUP BY run_id
),
spent AS (
  SELECT run_id,
    COALESCE(SUM(duration_ns) FILTER (phase = 'communication'), 0) / NULLIF(SUM(duration_ns), 0) AS unsplit_share
  FROM timeline.phase
  SEMI JOIN judged USING (run_id, iteration)
  GROUP BY run_id
)
SELECT
  r.run_id, COALESCE(k.ranks, 0), COALESCE(k.truncated_ranks, 0),
  CASE
    WHEN r.world_size IS NULL AND (k.ranks IS NULL OR COALESCE(s.is_unknown, false)) THEN NULL
    ELSE GREATEST(COALESCE(r.world_size, 0), COALESCE(k.least_ranks, 0), COALESCE(s.least_ranks, 0))
  END,
  COALESCE(m.collectives, 0), COALESCE(m.complete_collectives, 0),
  p.unsplit_share,
  p.unsplit_share <= (SELECT value FROM meta.threshold WHERE name = 'timeline.MOST_UNSPLIT_SHARE')
FROM meta.run AS r
LEFT JOIN recorded AS k USING (run_id)
LEFT JOIN stated AS s USING (run_id)
LEFT JOIN met AS m USING (run_id)
LEFT JOIN spent AS p USING (run_id)
ORDER BY r.run_id
