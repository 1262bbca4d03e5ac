-- What devices work on, by kind of work: calls and time an iteration, mean over ranks, and the share of device time.
WITH steps AS (
  SELECT run_id, COUNT(*) AS rank_iterations
  FROM timeline.rank_iteration JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY run_id
)
SELECT k.run_id, k.kind, SUM(k.calls) / ANY_VALUE(s.rank_iterations) AS calls,
  SUM(k.duration_ns) / ANY_VALUE(s.rank_iterations) / 1e6 AS ms,
  SUM(k.duration_ns) / SUM(SUM(k.duration_ns)) OVER (PARTITION BY k.run_id) AS share
FROM operation.kernel AS k
JOIN steps AS s USING (run_id)
GROUP BY k.run_id, k.kind
ORDER BY k.run_id, ms DESC, k.kind
