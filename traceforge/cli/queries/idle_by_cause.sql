-- Why devices are idle and in which call of the runtime or driver: ms an iteration by rank, cause and call.
WITH steps AS (
  SELECT run_id, rank, COUNT(*) AS iterations FROM timeline.rank_iteration GROUP BY run_id, rank
)
SELECT g.run_id, g.rank, g.cause, g.call, COUNT(*) / ANY_VALUE(s.iterations) AS gaps,
  SUM(g.duration_ns) / ANY_VALUE(s.iterations) / 1e6 AS ms, SUM(g.call_ns) / ANY_VALUE(s.iterations) / 1e6 AS ms_in_call
FROM timeline.gap AS g
JOIN steps AS s USING (run_id, rank)
GROUP BY g.run_id, g.rank, g.cause, g.call
ORDER BY g.run_id, ms DESC, g.rank, g.cause, g.call
