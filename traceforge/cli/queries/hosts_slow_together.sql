-- Iterations in which transfers of two hosts or more took half as long again as they usually do: a shared switch?
WITH spent AS (
  SELECT p.run_id, p.iteration, r.host, AVG(p.duration_ns) AS transfer_ns
  FROM timeline.phase AS p
  JOIN align.rank AS r USING (run_id, rank)
  WHERE p.phase = 'transfer' AND r.host IS NOT NULL
  GROUP BY p.run_id, p.iteration, r.host
),
usual AS (
  SELECT *, MEDIAN(transfer_ns) OVER (PARTITION BY run_id, host) AS median_ns,
    COUNT(*) OVER (PARTITION BY run_id, iteration) AS hosts
  FROM spent
)
SELECT run_id, iteration, COUNT(*) AS slow_hosts, ANY_VALUE(hosts) AS hosts,
  STRING_AGG(host, ', ' ORDER BY host) AS which, AVG(transfer_ns - median_ns) / 1e6 AS above_median_ms
FROM usual
WHERE transfer_ns > 1.5 * median_ns
GROUP BY run_id, iteration
HAVING COUNT(*) > 1
ORDER BY above_median_ms DESC, run_id, iteration
