-- The last to arrive in each iteration: the rank whose last arrivals made the others wait longest.
WITH last_arrivals AS (
  SELECT
    collective.iteration,
    collective.last_rank,
    CAST(SUM(collective.skew_ns) AS BIGINT) AS skew_ns
  FROM timeline.collective AS collective
  JOIN timeline.iteration AS iteration
    ON iteration.run_id = collective.run_id
    AND iteration.iteration = collective.iteration
  WHERE collective.run_id = $run_id
    AND collective.last_rank IS NOT NULL
    AND NOT iteration.is_warmup
    AND NOT iteration.is_partial
  GROUP BY collective.iteration, collective.last_rank
),
resolved AS (
  SELECT
    iteration,
    BOOL_OR(NOT below_resolution) AS is_resolved
  FROM timeline.arrival
  WHERE run_id = $run_id
  GROUP BY iteration
)
SELECT
  last_arrivals.iteration,
  last_arrivals.last_rank,
  last_arrivals.skew_ns,
  resolved.is_resolved
FROM last_arrivals
JOIN resolved
  ON resolved.iteration = last_arrivals.iteration
QUALIFY ROW_NUMBER() OVER (
  PARTITION BY last_arrivals.iteration
  ORDER BY last_arrivals.skew_ns DESC, last_arrivals.last_rank
) = 1
ORDER BY last_arrivals.iteration
