-- Delay by failure mode and cause in each judged iteration, and the same work at reference durations, ns; adds up to the iteration.
SELECT
  e.iteration,
  'reference' AS name,
  CAST(e.reference_ns AS DOUBLE) AS value
FROM attribute.excess AS e
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE e.run_id = $run_id AND NOT i.is_warmup AND NOT i.is_partial
UNION ALL
SELECT
  d.iteration,
  d.mode || '/' || d.cause AS name,
  CAST(SUM(d.delay_ns) AS DOUBLE) AS value
FROM attribute.delay AS d
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE d.run_id = $run_id AND NOT i.is_warmup AND NOT i.is_partial
GROUP BY d.iteration, d.mode, d.cause
ORDER BY iteration, name
