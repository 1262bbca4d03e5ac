-- Turns of the first rank of each stage in the iteration whose duration is nearest to the median.
WITH shown AS (
  SELECT iteration
  FROM timeline.iteration
  SEMI JOIN timeline.bubble AS b USING (run_id, iteration)
  WHERE run_id = $run_id AND NOT is_warmup AND NOT is_partial
  ORDER BY ABS(duration_ns - MEDIAN(duration_ns) OVER ()), iteration
  LIMIT 1
),
lane AS (
  SELECT stage, MIN(rank) AS rank
  FROM timeline.role
  SEMI JOIN timeline.bubble AS b USING (run_id, rank)
  WHERE run_id = $run_id
  GROUP BY stage
)
SELECT m.iteration, l.stage, m.rank, m.chunk, m.microbatch, m.direction, m.start_ns, m.duration_ns
FROM timeline.microbatch AS m
JOIN shown USING (iteration)
JOIN lane AS l USING (rank)
WHERE m.run_id = $run_id
ORDER BY l.stage, m.turn
