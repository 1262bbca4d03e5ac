-- How long iterations take: one row a run, without warm-up and partial iterations.
-- Scope: run
CREATE OR REPLACE VIEW timeline.iteration_quantile (
  -- Joins meta.run.run_id.
  run_id,
  -- Iterations counted.
  iterations,
  -- Median duration, ns.
  p50_ns,
  -- Duration that one in twenty exceeds, ns.
  p95_ns,
  -- Duration that one in a hundred exceeds, ns.
  p99_ns,
  -- Longest duration, ns.
  longest_duration_ns,
  -- Standard deviation over mean; NULL of a single iteration.
  cv
) AS
SELECT
  run_id,
  COUNT(*) AS iterations,
  QUANTILE_DISC(duration_ns, 0.5) AS p50_ns,
  QUANTILE_DISC(duration_ns, 0.95) AS p95_ns,
  QUANTILE_DISC(duration_ns, 0.99) AS p99_ns,
  MAX(duration_ns) AS longest_duration_ns,
  STDDEV_SAMP(duration_ns) / AVG(duration_ns) AS cv
FROM timeline.iteration
WHERE NOT is_warmup AND NOT is_partial
GROUP BY run_id
ORDER BY run_id
