-- How each iteration of each rank was spent. Exclusive; sums to timeline.rank_iteration.duration_ns to the ns.
CREATE OR REPLACE TABLE timeline.phase (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number.
  iteration,
  -- Global rank.
  rank,
  -- compute, transfer, wait, copy, input, runtime or idle (the first that applies at each instant).
  phase,
  -- Time in the phase, ns.
  duration_ns
) AS
SELECT run_id, iteration, rank, phase, CAST(SUM(duration_ns) AS BIGINT)
FROM timeline.segment
GROUP BY ALL
ORDER BY run_id, iteration, rank, phase
