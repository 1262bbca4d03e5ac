-- Phases by rank, summed over the iterations that count.
SELECT
  phase.rank,
  phase.phase,
  CAST(SUM(phase.duration_ns) AS BIGINT) AS duration_ns
FROM timeline.phase AS phase
JOIN timeline.iteration AS iteration
  ON iteration.run_id = phase.run_id
  AND iteration.iteration = phase.iteration
WHERE phase.run_id = $run_id
  AND NOT iteration.is_warmup
  AND NOT iteration.is_partial
GROUP BY phase.rank, phase.phase
ORDER BY phase.rank, phase.phase
