-- Time in each phase by judged iteration, mean over ranks, ns; adds up to the mean iteration of a rank.
WITH present AS (
  SELECT run_id, iteration, COUNT(*) AS ranks
  FROM timeline.rank_iteration
  GROUP BY run_id, iteration
)
SELECT
  p.iteration,
  p.phase AS name,
  SUM(p.duration_ns) / ANY_VALUE(r.ranks) AS value
FROM timeline.phase AS p
JOIN present AS r USING (run_id, iteration)
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE p.run_id = $run_id AND NOT i.is_warmup AND NOT i.is_partial
GROUP BY p.iteration, p.phase
ORDER BY p.iteration, p.phase
