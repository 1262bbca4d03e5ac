-- Hosts whose rack is stated: the own time of their ranks above the median rank of the same role, by rack.
WITH judged AS (
  SELECT iteration, COUNT(*) OVER () AS iterations FROM operation.judged_iteration WHERE run_id = $run_id
),
spent AS (
  SELECT p.rank, SUM(p.duration_ns) / ANY_VALUE(j.iterations) AS own_ns
  FROM timeline.phase AS p
  JOIN judged AS j USING (iteration)
  WHERE p.run_id = $run_id AND p.phase NOT IN ('wait', 'transfer', 'communication')
  GROUP BY p.rank
),
beside AS (
  SELECT s.rank, s.own_ns - MEDIAN(s.own_ns) OVER (PARTITION BY o.role) AS above_ns
  FROM spent AS s
  JOIN timeline.role AS o ON o.run_id = $run_id AND o.rank = s.rank
),
host AS (
  SELECT k.rack, r.host, COUNT(*) AS ranks, AVG(b.above_ns) AS above_ns, MIN(b.above_ns) AS least_ns,
    ARG_MAX(b.rank, b.above_ns) AS slowest_rank
  FROM beside AS b
  JOIN align.rank AS r ON r.run_id = $run_id AND r.rank = b.rank
  JOIN align.rack AS k ON k.run_id = $run_id AND k.host = r.host
  GROUP BY k.rack, r.host
)
SELECT rack, host, ranks, above_ns, least_ns, slowest_rank,
  ROW_NUMBER() OVER (PARTITION BY rack ORDER BY host) AS place,
  SUM(ranks * above_ns) OVER (PARTITION BY rack) / SUM(ranks) OVER (PARTITION BY rack) AS rack_above_ns
FROM host
ORDER BY rack_above_ns DESC, rack, place
