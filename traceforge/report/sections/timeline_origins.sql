-- Where each rank's iterations lie, and the instant from which the picture counts: that at which the iteration began.
SELECT
  own.iteration,
  own.rank,
  own.start_ns,
  own.duration_ns,
  CASE WHEN clock.status = 'unaligned' THEN own.start_ns ELSE iteration.start_ns END AS origin_ns,
  COALESCE(clock.status = 'unaligned', false) AS is_unaligned
FROM timeline.rank_iteration AS own
JOIN timeline.iteration AS iteration
  ON iteration.run_id = own.run_id
  AND iteration.iteration = own.iteration
LEFT JOIN align.clock AS clock
  ON clock.run_id = own.run_id
  AND clock.rank = own.rank
WHERE own.run_id = $run_id
ORDER BY own.iteration, own.rank
