-- A mean iteration: its duration, and the part above what it would take at reference durations.
SELECT
  COUNT(*) AS iterations,
  SUM(reference_ns + excess_ns) / COUNT(*) AS duration_ns,
  SUM(excess_ns) / COUNT(*) AS excess_ns,
  SUM(excess_ns) / SUM(reference_ns + excess_ns) AS share
FROM attribute.excess
JOIN timeline.iteration USING (run_id, iteration)
WHERE run_id = $run_id
  AND NOT is_warmup
