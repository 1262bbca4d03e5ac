-- One row an iteration of one rank, with the communication that its compute hid.
-- Scope: rank
CREATE OR REPLACE TABLE timeline.rank_iteration (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number.
  iteration,
  -- Global rank.
  rank,
  -- Start, aligned clock, ns (own clock where the rank is unaligned).
  start_ns,
  -- Duration, ns; the phases of timeline.phase sum to it exactly.
  duration_ns,
  -- Communication that ran while compute ran too, ns; not a phase of its own.
  hidden_communication_ns
) AS
SELECT w.run_id, w.iteration, w.rank, w.start_ns, w.end_ns - w.start_ns,
  CAST(COALESCE(SUM(s.hidden_communication_ns), 0) AS BIGINT)
FROM timeline.window AS w
LEFT JOIN timeline.segment AS s USING (run_id, iteration, rank)
GROUP BY ALL
ORDER BY w.run_id, w.iteration, w.rank
