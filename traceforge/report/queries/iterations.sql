-- Iterations of the job over all ranks.
SELECT
  iteration,
  start_ns,
  duration_ns,
  is_warmup,
  is_partial,
  annotation
FROM timeline.iteration
WHERE run_id = $run_id
ORDER BY iteration
