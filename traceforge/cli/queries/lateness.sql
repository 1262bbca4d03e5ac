-- Who makes the others wait: lateness by rank, and the waiting that each rank alone caused.
SELECT run_id, rank, collectives, last_count, median_late_ns / 1e6 AS median_late_ms, p95_late_ns / 1e6 AS p95_late_ms,
  total_wait_ns / 1e6 AS waited_ms, caused_wait_ns / 1e6 AS caused_wait_ms
FROM timeline.rank_lateness
ORDER BY run_id, caused_wait_ms DESC, rank
