-- Which call to the runtime another thread makes while training thread and device stand still, and for how much of it.
WITH still AS (
  SELECT rank, start_ns, start_ns + duration_ns AS end_ns
  FROM timeline.segment
  WHERE run_id = $run_id AND phase = 'idle'
)
SELECT g.call,
  SUM(LEAST(g.call_ns, LEAST(s.end_ns, g.start_ns + g.duration_ns) - GREATEST(s.start_ns, g.start_ns)))
    / (SELECT SUM(end_ns - start_ns) FROM still) AS share
FROM still AS s
JOIN timeline.gap AS g
  ON g.run_id = $run_id AND g.rank = s.rank AND g.start_ns < s.end_ns AND g.start_ns + g.duration_ns > s.start_ns
WHERE g.call IS NOT NULL
GROUP BY g.call
ORDER BY share DESC, g.call
LIMIT 1
