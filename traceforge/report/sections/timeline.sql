-- Phases of every rank in the drawn iterations, as consecutive intervals since the iteration began.
-- A rank whose clock is not aligned begins each iteration with the others.
SELECT
  segment.iteration,
  segment.rank,
  segment.phase,
  segment.start_ns - CASE WHEN clock.status = 'unaligned' THEN own.start_ns ELSE iteration.start_ns END AS start_ns,
  segment.duration_ns
FROM timeline.segment AS segment
JOIN timeline.rank_iteration AS own
  ON own.run_id = segment.run_id
  AND own.iteration = segment.iteration
  AND own.rank = segment.rank
JOIN timeline.iteration AS iteration
  ON iteration.run_id = segment.run_id
  AND iteration.iteration = segment.iteration
LEFT JOIN align.clock AS clock
  ON clock.run_id = segment.run_id
  AND clock.rank = segment.rank
WHERE segment.run_id = $run_id
  AND segment.iteration IN ($iterations)
  AND segment.duration_ns > 0
ORDER BY segment.rank, segment.iteration, segment.start_ns
