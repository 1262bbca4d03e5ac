-- Where an iteration's time goes, averaged over ranks and judged iterations: the terms a scaling model needs.
CREATE OR REPLACE TABLE forecast.term (
  -- Joins meta.run.run_id.
  run_id,
  -- compute, exposed_transfer, waiting, copy, input, runtime or idle.
  term,
  -- Mean time a rank spends in it, ns an iteration.
  duration_ns_per_iteration,
  -- Its share of the iteration.
  share
) AS
WITH judged AS (
  SELECT run_id, iteration FROM timeline.iteration WHERE NOT is_warmup AND NOT is_partial
),
total AS (
  SELECT run_id, COUNT(*) AS rank_iterations, SUM(duration_ns) AS duration_ns
  FROM timeline.rank_iteration
  SEMI JOIN judged USING (run_id, iteration)
  GROUP BY ALL
)
SELECT
  p.run_id,
  CASE p.phase WHEN 'transfer' THEN 'exposed_transfer' WHEN 'wait' THEN 'waiting' ELSE p.phase END AS term,
  CAST(ROUND(SUM(p.duration_ns) / ANY_VALUE(t.rank_iterations)) AS BIGINT),
  SUM(p.duration_ns) / ANY_VALUE(t.duration_ns)
FROM timeline.phase AS p
SEMI JOIN judged USING (run_id, iteration)
JOIN total AS t ON t.run_id = p.run_id
GROUP BY p.run_id, term
ORDER BY p.run_id, term
