-- Time of each rank in each operation (kernel, where it has none) and its calls, means over judged iterations, ns.
WITH recorded AS (
  SELECT w.run_id, w.rank, COUNT(*) AS iterations
  FROM timeline.rank_iteration AS w
  JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY w.run_id, w.rank
)
SELECT
  k.rank,
  COALESCE(k.operation, k.kernel) AS name,
  CAST(SUM(k.duration_ns) / MIN(r.iterations) AS DOUBLE) AS value,
  CAST(SUM(CASE WHEN k.operation IS NULL OR k.joined = 'host' THEN k.calls ELSE k.operation_calls END)
    / MIN(r.iterations) AS DOUBLE) AS calls
FROM operation.kernel AS k
JOIN recorded AS r USING (run_id, rank)
WHERE k.run_id = $run_id AND k.class NOT IN ('communication', 'communication_call', 'host_communication')
GROUP BY k.rank, COALESCE(k.operation, k.kernel)
ORDER BY k.rank, name
