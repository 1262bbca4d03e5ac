-- Which kernels each operation runs: calls and time an iteration, mean over ranks.
WITH steps AS (
  SELECT run_id, COUNT(*) AS rank_iterations
  FROM timeline.rank_iteration JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY run_id
)
SELECT k.run_id, k.operation, k.kernel, SUM(k.calls) / ANY_VALUE(s.rank_iterations) AS calls,
  SUM(k.duration_ns) / ANY_VALUE(s.rank_iterations) / 1e6 AS ms,
  SUM(k.duration_ns) / SUM(SUM(k.duration_ns)) OVER (PARTITION BY k.run_id, k.operation) AS share_of_operation
FROM operation.kernel AS k
JOIN steps AS s USING (run_id)
WHERE k.operation IS NOT NULL
GROUP BY k.run_id, k.operation, k.kernel
ORDER BY k.run_id, SUM(ms) OVER (PARTITION BY k.run_id, k.operation) DESC, k.operation, ms DESC, k.kernel
LIMIT 100
