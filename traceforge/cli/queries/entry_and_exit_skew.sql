-- Skew at entry against skew at exit: what ranks bring into a collective, and what is left when they leave it.
WITH left_at AS (
  SELECT run_id, collective_id, MAX(end_ns) - MIN(end_ns) AS exit_skew_ns
  FROM timeline.arrival
  GROUP BY run_id, collective_id
)
SELECT c.run_id, c.communicator_id, c.op, COUNT(*) AS collectives, MEDIAN(c.skew_ns) / 1e6 AS median_entry_skew_ms,
  MEDIAN(e.exit_skew_ns) / 1e6 AS median_exit_skew_ms, MAX(c.skew_ns) / 1e6 AS max_entry_skew_ms,
  MAX(e.exit_skew_ns) / 1e6 AS max_exit_skew_ms
FROM timeline.collective AS c
JOIN left_at AS e USING (run_id, collective_id)
GROUP BY c.run_id, c.communicator_id, c.op
ORDER BY c.run_id, median_entry_skew_ms DESC, c.communicator_id, c.op
