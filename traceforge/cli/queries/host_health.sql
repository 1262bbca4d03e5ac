-- Hosts by the own time of their ranks above the median rank of its role; where the least is above it too, all are slow.
WITH judged AS (
  SELECT run_id, iteration, COUNT(*) OVER (PARTITION BY run_id) AS iterations
  FROM operation.judged_iteration
),
spent AS (
  SELECT p.run_id, p.rank, SUM(p.duration_ns) / ANY_VALUE(j.iterations) AS own_ns
  FROM timeline.phase AS p
  JOIN judged AS j USING (run_id, iteration)
  WHERE p.phase NOT IN ('wait', 'transfer', 'communication')
  GROUP BY p.run_id, p.rank
),
beside AS (
  SELECT s.run_id, s.rank, s.own_ns - MEDIAN(s.own_ns) OVER (PARTITION BY s.run_id, o.role) AS above_ns
  FROM spent AS s
  JOIN timeline.role AS o USING (run_id, rank)
)
SELECT b.run_id, r.host, COUNT(*) AS ranks, AVG(b.above_ns) / 1e6 AS above_median_ms, MIN(b.above_ns) / 1e6 AS least_ms,
  MAX(b.above_ns) / 1e6 AS most_ms, ARG_MAX(b.rank, b.above_ns) AS slowest_rank
FROM beside AS b
JOIN align.rank AS r USING (run_id, rank)
WHERE r.host IS NOT NULL
GROUP BY b.run_id, r.host
QUALIFY ROW_NUMBER() OVER (PARTITION BY b.run_id ORDER BY above_median_ms DESC, r.host) <= 100
ORDER BY b.run_id, above_median_ms DESC, r.host
