-- Mean lateness and waiting of every rank in the shown iterations.
SELECT
  iteration,
  rank,
  AVG(late_ns) AS late_ns,
  AVG(wait_ns) AS wait_ns
FROM timeline.arrival
WHERE run_id = $run_id
  AND iteration IN ($iterations)
GROUP BY iteration, rank
ORDER BY iteration, late_ns DESC, rank
