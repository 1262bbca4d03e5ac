-- Iteration time above what it would be at reference durations, over all iterations.
SELECT
  COUNT(*) AS iterations,
  CAST(COALESCE(SUM(reference_ns), 0) AS BIGINT) AS reference_ns,
  CAST(COALESCE(SUM(excess_ns), 0) AS BIGINT) AS excess_ns
FROM attribute.excess
WHERE run_id = $run_id
