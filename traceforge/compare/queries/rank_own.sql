-- Time that each rank spends on work of its own in each judged iteration (all phases but communication), ns.
SELECT
  p.iteration,
  CAST(p.rank AS VARCHAR) AS name,
  CAST(SUM(p.duration_ns) FILTER (WHERE p.phase NOT IN ('wait', 'transfer', 'communication')) AS DOUBLE) AS value
FROM timeline.phase AS p
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE p.run_id = $run_id AND NOT i.is_warmup AND NOT i.is_partial
GROUP BY p.iteration, p.rank
ORDER BY p.iteration, p.rank
