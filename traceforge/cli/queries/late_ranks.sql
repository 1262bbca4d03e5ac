-- Who arrives late: how often each rank is the last, and by how much it is late on average.
SELECT a.run_id, a.rank, COUNT(*) FILTER (WHERE c.last_rank = a.rank) AS last_count, COUNT(*) AS collectives,
  AVG(a.late_ns) / 1e6 AS mean_late_ms, QUANTILE_CONT(a.late_ns, 0.95) / 1e6 AS p95_late_ms
FROM timeline.arrival AS a
JOIN timeline.collective AS c USING (run_id, collective_id)
GROUP BY a.run_id, a.rank
ORDER BY a.run_id, mean_late_ms DESC, a.rank
