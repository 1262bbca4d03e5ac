-- Delay of a mean iteration by failure mode, and the cause that owns most of each.
WITH counted AS (
  SELECT
    COUNT(*) AS iterations,
    SUM(reference_ns + excess_ns) AS duration_ns
  FROM attribute.excess
  JOIN timeline.iteration USING (run_id, iteration)
  WHERE run_id = $run_id
    AND NOT is_warmup
),
by_cause AS (
  SELECT
    mode,
    cause,
    SUM(delay_ns) AS delay_ns
  FROM attribute.delay
  JOIN timeline.iteration USING (run_id, iteration)
  WHERE run_id = $run_id
    AND NOT is_warmup
  GROUP BY mode, cause
  -- Credit for being faster than the reference is no part of what stays unexplained.
  HAVING mode <> 'unexplained' OR cause = 'unexplained' OR SUM(delay_ns) >= 0
)
SELECT
  by_cause.mode,
  SUM(by_cause.delay_ns) / ANY_VALUE(counted.iterations) AS delay_ns,
  SUM(by_cause.delay_ns) / ANY_VALUE(counted.duration_ns) AS share,
  ARG_MAX(by_cause.cause, (by_cause.delay_ns, by_cause.cause)) AS largest_cause
FROM by_cause
CROSS JOIN counted
GROUP BY by_cause.mode
ORDER BY delay_ns DESC, by_cause.mode
