-- Why the device idles, by cause: time of a mean iteration of a mean rank, and the call that fills most of it.
WITH judged AS (
  SELECT COUNT(*) AS iterations FROM operation.judged_iteration WHERE run_id = $run_id
)
SELECT
  g.cause,
  SUM(g.duration_ns) / ANY_VALUE(j.iterations) AS duration_ns,
  ARG_MAX(g.call, g.call_ns) AS largest_call
FROM timeline.gap AS g
JOIN operation.judged_iteration AS i ON i.run_id = g.run_id AND i.iteration = g.iteration
CROSS JOIN judged AS j
WHERE g.run_id = $run_id
GROUP BY g.cause
ORDER BY duration_ns DESC, g.cause
