-- Chains of delay: stretches of iterations in which the same rank owns the most, the longest first.
WITH owned AS (
  SELECT run_id, iteration, rank, SUM(delay_ns) AS delay_ns
  FROM attribute.delay
  WHERE rank IS NOT NULL
  GROUP BY run_id, iteration, rank
),
led AS (
  SELECT run_id, iteration, ARG_MAX(rank, (delay_ns, -rank)) AS rank, MAX(delay_ns) AS delay_ns
  FROM owned
  GROUP BY run_id, iteration
  HAVING MAX(delay_ns) > 0
),
chained AS (
  SELECT *, iteration - ROW_NUMBER() OVER (PARTITION BY run_id, rank ORDER BY iteration) AS chain
  FROM led
)
SELECT run_id, rank, MIN(iteration) AS first_iteration, MAX(iteration) AS last_iteration, COUNT(*) AS iterations,
  SUM(delay_ns) / 1e6 AS delay_ms
FROM chained
GROUP BY run_id, rank, chain
QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY iterations DESC, delay_ms DESC, rank) <= 50
ORDER BY iterations DESC, delay_ms DESC, run_id, rank
