-- Phase means of each run against the run before it in this database; `traceforge compare` says what is significant.
WITH spent AS (
  SELECT p.run_id, p.phase, SUM(p.duration_ns) AS duration_ns
  FROM timeline.phase AS p
  JOIN timeline.iteration AS i USING (run_id, iteration)
  WHERE NOT i.is_warmup AND NOT i.is_partial
  GROUP BY p.run_id, p.phase
),
counted AS (
  SELECT r.run_id, COUNT(*) AS rank_iterations
  FROM timeline.rank_iteration AS r
  JOIN timeline.iteration AS i USING (run_id, iteration)
  WHERE NOT i.is_warmup AND NOT i.is_partial
  GROUP BY r.run_id
),
means AS (
  SELECT s.run_id, s.phase, s.duration_ns / c.rank_iterations AS mean_ns
  FROM spent AS s
  JOIN counted AS c USING (run_id)
),
followed AS (
  SELECT run_id, run_name, LAG(run_id) OVER (ORDER BY run_id) AS earlier_id, LAG(run_name) OVER (ORDER BY run_id) AS earlier
  FROM meta.run
)
SELECT f.run_id, f.earlier, f.run_name, m.phase, COALESCE(e.mean_ns, 0) / 1e6 AS earlier_ms, m.mean_ns / 1e6 AS mean_ms,
  (m.mean_ns - COALESCE(e.mean_ns, 0)) / 1e6 AS change_ms
FROM followed AS f
JOIN means AS m ON m.run_id = f.run_id
LEFT JOIN means AS e ON e.run_id = f.earlier_id AND e.phase = m.phase
WHERE f.earlier_id IS NOT NULL
ORDER BY f.run_id, ABS(change_ms) DESC, m.phase
