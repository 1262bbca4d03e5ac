-- Duration of each judged iteration, over all ranks, ns.
SELECT
  iteration,
  'iteration' AS name,
  CAST(duration_ns AS DOUBLE) AS value
FROM timeline.iteration
WHERE run_id = $run_id AND NOT is_warmup AND NOT is_partial
ORDER BY iteration, name
