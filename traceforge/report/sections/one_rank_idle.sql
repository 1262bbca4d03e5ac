-- Why the device idles, by cause: time of a mean iteration of a mean rank, and the call that fills most of it.
WITH judged AS (
  SELECT COUNT(*) AS iterations FROM operation.judged_iteration WHERE run_id = $run_id
),
by_call AS (
  SELECT g.cause, g.call, SUM(g.duration_ns) AS duration_ns, SUM(g.call_ns) AS call_ns
  FROM timeline.gap AS g
  JOIN operation.judged_iteration AS i ON i.run_id = g.run_id AND i.iteration = g.iteration
  WHERE g.run_id = $run_id
  GROUP BY g.cause, g.call
)
SELECT
  b.cause,
  SUM(b.duration_ns) / ANY_VALUE(j.iterations) AS duration_ns,
  ARG_MAX(b.call, b.call_ns) AS largest_call,
  MAX(b.call_ns) / SUM(b.duration_ns) AS call_share
FROM by_call AS b
CROSS JOIN judged AS j
GROUP BY b.cause
ORDER BY duration_ns DESC, b.cause
