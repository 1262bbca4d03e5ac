-- Which kernels each operation runs: calls and time an iteration, mean over ranks.
WITH steps AS (
  SELECT run_id, COUNT(*) AS rank_iterations
  FROM timeline.rank_iteration JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY run_id
),
spent AS (
  SELECT k.run_id, k.operation, k.kernel, SUM(k.calls) / ANY_VALUE(s.rank_iterations) AS calls,
    SUM(k.duration_ns) / ANY_VALUE(s.rank_iterations) / 1e6 AS ms
  FROM operation.kernel AS k
  JOIN steps AS s USING (run_id)
  WHERE k.operation IS NOT NULL
  GROUP BY k.run_id, k.operation, k.kernel
),
shared AS (
  SELECT *, SUM(ms) OVER (PARTITION BY run_id, operation) AS operation_ms
  FROM spent
)
SELECT run_id, operation, kernel, calls, ms, ms / operation_ms AS share_of_operation
FROM shared
QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY operation_ms DESC, operation, ms DESC, kernel) <= 100
ORDER BY run_id, operation_ms DESC, operation, ms DESC, kernel
