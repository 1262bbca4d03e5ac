-- What the host did while the device had nothing to do, by rank.
SELECT run_id, rank, phase, activity, COUNT(*) AS gaps, SUM(duration_ns) / 1e6 AS total_ms,
  MAX(duration_ns) / 1e6 AS longest_ms
FROM timeline.segment
WHERE phase IN ('input', 'runtime', 'idle')
GROUP BY run_id, rank, phase, activity
ORDER BY run_id, total_ms DESC, rank
