-- Racks, where they are stated, by their ranks' own time above the median rank of its role; their best host beside it.
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
),
host AS (
  SELECT b.run_id, k.rack, r.host, COUNT(*) AS ranks, AVG(b.above_ns) AS above_ns
  FROM beside AS b
  JOIN align.rank AS r USING (run_id, rank)
  JOIN align.rack AS k USING (run_id, host)
  GROUP BY b.run_id, k.rack, r.host
)
SELECT run_id, rack, COUNT(*) AS hosts, SUM(ranks) AS ranks, SUM(ranks * above_ns) / SUM(ranks) / 1e6 AS above_median_ms,
  MIN(above_ns) / 1e6 AS least_host_ms, MAX(above_ns) / 1e6 AS most_host_ms, ARG_MAX(host, above_ns) AS slowest_host
FROM host
GROUP BY run_id, rack
QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY above_median_ms DESC, rack) <= 100
ORDER BY run_id, above_median_ms DESC, rack
