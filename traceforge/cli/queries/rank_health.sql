-- Ranks by their own time an iteration (all but communication) above the median rank of their role; the furthest first.
WITH judged AS (
  SELECT run_id, iteration, COUNT(*) OVER (PARTITION BY run_id) AS iterations
  FROM operation.judged_iteration
),
spent AS (
  SELECT p.run_id, p.rank,
    SUM(p.duration_ns) FILTER (WHERE p.phase NOT IN ('wait', 'transfer', 'communication')) / ANY_VALUE(j.iterations) AS own_ns,
    SUM(p.duration_ns) FILTER (WHERE p.phase = 'compute') / ANY_VALUE(j.iterations) AS compute_ns,
    SUM(p.duration_ns) / ANY_VALUE(j.iterations) AS whole_ns
  FROM timeline.phase AS p
  JOIN judged AS j USING (run_id, iteration)
  GROUP BY p.run_id, p.rank
),
beside AS (
  SELECT s.*, o.stage, MEDIAN(s.own_ns) OVER (PARTITION BY s.run_id, o.role) AS median_ns
  FROM spent AS s
  JOIN timeline.role AS o USING (run_id, rank)
)
SELECT b.run_id, b.rank, r.host, b.stage, b.own_ns / 1e6 AS own_ms, (b.own_ns - b.median_ns) / 1e6 AS above_median_ms,
  b.own_ns / b.median_ns - 1 AS above_median_share, b.compute_ns / 1e6 AS compute_ms, (b.whole_ns - b.own_ns) / 1e6 AS communication_ms
FROM beside AS b
JOIN align.rank AS r USING (run_id, rank)
QUALIFY ROW_NUMBER() OVER (PARTITION BY b.run_id ORDER BY above_median_ms DESC, b.rank) <= 100
ORDER BY b.run_id, above_median_ms DESC, b.rank
