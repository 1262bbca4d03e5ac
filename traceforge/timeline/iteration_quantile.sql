-- How long iterations take: one row a run, without warm-up and partial iterations.
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
  run_id, COUNT(*), QUANTILE_DISC(duration_ns, 0.5), QUANTILE_DISC(duration_ns, 0.95), QUANTILE_DISC(duration_ns, 0.99),
  MAX(duration_ns), STDDEV_SAMP(duration_ns) / AVG(duration_ns)
FROM timeline.iteration
WHERE NOT is_warmup AND NOT is_partial
GROUP BY run_id
ORDER BY run_id
