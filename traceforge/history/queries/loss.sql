-- The ledger by mode and cause, mean over the judged iterations.
WITH judged AS (
  SELECT excess.iteration, iteration.duration_ns
  FROM attribute.excess AS excess
  JOIN timeline.iteration AS iteration USING (run_id, iteration)
  WHERE excess.run_id = $run_id AND NOT iteration.is_warmup
),
whole AS (SELECT COUNT(*) AS iterations, SUM(duration_ns) AS duration_ns FROM judged)
SELECT
  delay.mode,
  delay.cause,
  SUM(delay.delay_ns) / ANY_VALUE(whole.iterations) AS delay_ns_per_iteration,
  SUM(delay.delay_ns) / ANY_VALUE(whole.duration_ns) AS share
FROM attribute.delay AS delay
JOIN judged USING (iteration)
CROSS JOIN whole
WHERE delay.run_id = $run_id
GROUP BY delay.mode, delay.cause
ORDER BY delay.mode, delay.cause
