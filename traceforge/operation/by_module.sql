-- Device time by module: one row a rank and innermost nn.Module, as far as modules were recorded.
-- Scope: rank
CREATE OR REPLACE VIEW operation.by_module (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Innermost nn.Module around the launch; NULL where none is recorded.
  module,
  -- Kernels, copies and memory sets launched in judged iterations.
  calls,
  -- Their time, ns; calls on several streams at once each count.
  duration_ns,
  -- Share of the rank's device time, 0..1.
  share,
  -- Operation with most of its time; NULL where that has none.
  largest_operation
) AS
SELECT
  run_id,
  rank,
  module,
  CAST(SUM(calls) AS BIGINT) AS calls,
  CAST(SUM(duration_ns) AS BIGINT) AS duration_ns,
  SUM(duration_ns) / NULLIF(SUM(SUM(duration_ns)) OVER (PARTITION BY run_id, rank), 0) AS share,
  ARG_MAX(operation, duration_ns) AS largest_operation
FROM operation.kernel
GROUP BY run_id, rank, module
ORDER BY run_id, rank, duration_ns DESC, module
