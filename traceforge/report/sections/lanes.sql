-- Phases of the shown ranks in the shown iterations, as consecutive intervals.
SELECT
  segment.iteration,
  segment.rank,
  segment.phase,
  segment.start_ns - iteration.start_ns AS start_ns,
  segment.start_ns - iteration.start_ns + segment.duration_ns AS end_ns
FROM timeline.segment AS segment
JOIN timeline.iteration AS iteration
  ON iteration.run_id = segment.run_id
  AND iteration.iteration = segment.iteration
WHERE segment.run_id = $run_id
  AND segment.iteration IN ($iterations)
  AND segment.rank IN ($ranks)
  AND segment.duration_ns > 0
ORDER BY segment.iteration, segment.rank, segment.start_ns
