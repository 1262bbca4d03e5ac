-- Device time by operation: one row a rank and operation, over annotations, modules, shapes and kernels.
-- Scope: rank
CREATE OR REPLACE VIEW operation.by_operation (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Host operation; NULL for device work without one.
  operation,
  -- Number of its calls that launched device work in judged iterations.
  operation_calls,
  -- Kernels, copies and memory sets launched.
  calls,
  -- Their time, ns; calls on several streams at once each count.
  duration_ns,
  -- Share of the rank's device time, 0..1.
  share,
  -- Arithmetic, FLOP; NULL where that of any part is not known.
  flops,
  -- Achieved arithmetic over all its kernels, FLOP/s; NULL as above.
  flops_per_s,
  -- Number of different shapes; 0 where not recorded.
  shapes,
  -- Kernel with most of its time, by short name.
  largest_kernel
) AS
SELECT
  run_id,
  rank,
  operation,
  CAST(SUM(operation_calls) AS BIGINT) AS operation_calls,
  CAST(SUM(calls) AS BIGINT) AS calls,
  CAST(SUM(duration_ns) AS BIGINT) AS duration_ns,
  SUM(duration_ns) / NULLIF(SUM(SUM(duration_ns)) OVER (PARTITION BY run_id, rank), 0) AS share,
  CASE WHEN COUNT(*) FILTER (WHERE flops IS NULL AND operation_calls > 0) = 0
    THEN CAST(SUM(flops) AS BIGINT) END AS flops,
  CASE WHEN COUNT(*) FILTER (WHERE flops IS NULL AND operation_calls > 0) = 0
    THEN SUM(flops) * 1e9 / NULLIF(SUM(duration_ns), 0) END AS flops_per_s,
  COUNT(DISTINCT shapes) AS shapes,
  ARG_MAX(kernel, duration_ns) AS largest_kernel
FROM operation.kernel
GROUP BY run_id, rank, operation
ORDER BY run_id, rank, duration_ns DESC, operation
