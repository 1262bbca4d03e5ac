-- Delay of a mean iteration by failure mode, cause and culprit.
WITH counted AS (
  SELECT COUNT(*) AS iterations FROM attribute.excess WHERE run_id = $run_id
)
SELECT
  delay.mode,
  delay.cause,
  delay.rank,
  CAST(SUM(delay.delay_ns) AS BIGINT) AS delay_ns,
  ANY_VALUE(counted.iterations) AS iterations
FROM attribute.delay AS delay
CROSS JOIN counted
WHERE delay.run_id = $run_id
GROUP BY delay.mode, delay.cause, delay.rank
ORDER BY delay.mode, delay.cause, delay.rank NULLS FIRST
