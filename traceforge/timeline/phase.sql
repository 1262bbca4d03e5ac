-- How each iteration of each rank was spent. Exclusive; sums to timeline.rank_iteration.duration_ns to the ns.
--
-- Where a rank has time in the phase communication, its wait and its transfer are lower bounds: that time is either.
-- Scope: rank
CREATE OR REPLACE TABLE timeline.phase (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number.
  iteration,
  -- Global rank.
  rank,
  -- One of: {phases} (the first that applies at each instant). While only communication runs it is transfer once all
  -- members have arrived, wait while one whose trace is here has not, and communication where a member has no trace at
  -- that time, or the call no partners, so that nobody knows which of the two it is.
  phase,
  -- Time in the phase, ns.
  duration_ns
) AS
SELECT run_id, iteration, rank, phase, CAST(SUM(duration_ns) AS BIGINT)
FROM timeline.segment
GROUP BY ALL
ORDER BY run_id, iteration, rank, phase
