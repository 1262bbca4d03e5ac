-- Delay that each rank owns in each judged iteration, whatever the cause, ns.
SELECT
  d.iteration,
  CAST(d.rank AS VARCHAR) AS name,
  CAST(SUM(d.delay_ns) AS DOUBLE) AS value
FROM attribute.delay AS d
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE d.run_id = $run_id AND d.rank IS NOT NULL AND NOT i.is_warmup AND NOT i.is_partial
GROUP BY d.iteration, d.rank
ORDER BY d.iteration, d.rank
