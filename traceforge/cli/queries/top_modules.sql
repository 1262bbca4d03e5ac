-- The nn.Modules whose kernels take longest, as far as modules were recorded: calls and time an iteration, mean over ranks.
WITH steps AS (
  SELECT run_id, COUNT(*) AS rank_iterations
  FROM timeline.rank_iteration JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY run_id
),
total AS (
  SELECT run_id, SUM(duration_ns) AS duration_ns FROM operation.kernel GROUP BY run_id
)
SELECT k.run_id, k.module AS name,
  SUM(k.calls) / ANY_VALUE(s.rank_iterations) AS calls,
  SUM(k.duration_ns) / ANY_VALUE(s.rank_iterations) / 1e6 AS ms, SUM(k.duration_ns) / ANY_VALUE(t.duration_ns) AS share,
  ARG_MAX(COALESCE(k.kernel, k.operation), k.duration_ns) AS longest_kernel
FROM operation.kernel AS k
JOIN steps AS s USING (run_id)
JOIN total AS t USING (run_id)
WHERE k.module IS NOT NULL
GROUP BY k.run_id, k.module
QUALIFY ROW_NUMBER() OVER (PARTITION BY k.run_id ORDER BY ms DESC, name) <= 50
ORDER BY k.run_id, ms DESC, name
