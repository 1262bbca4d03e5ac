-- Which kernels each nn.Module runs, as far as modules were recorded: calls and time an iteration, mean over ranks.
WITH steps AS (
  SELECT run_id, COUNT(*) AS rank_iterations
  FROM timeline.rank_iteration JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY run_id
),
spent AS (
  SELECT k.run_id, k.module, k.kind, COALESCE(k.kernel, k.operation) AS kernel,
    SUM(k.calls) / ANY_VALUE(s.rank_iterations) AS calls,
    SUM(k.duration_ns) / ANY_VALUE(s.rank_iterations) / 1e6 AS ms
  FROM operation.kernel AS k
  JOIN steps AS s USING (run_id)
  WHERE k.module IS NOT NULL
  GROUP BY k.run_id, k.module, k.kind, COALESCE(k.kernel, k.operation)
),
shared AS (
  SELECT *, SUM(ms) OVER (PARTITION BY run_id, module) AS module_ms
  FROM spent
)
SELECT run_id, module, kind, kernel, calls, ms, ms / module_ms AS share_of_module
FROM shared
QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY module_ms DESC, module, ms DESC, kernel) <= 100
ORDER BY run_id, module_ms DESC, module, ms DESC, kernel
