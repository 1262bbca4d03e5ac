-- What set the run's length: the critical path by rank and kind.
SELECT run_id, rank, kind, COUNT(*) AS pieces, SUM(duration_ns) / 1e6 AS total_ms,
  SUM(duration_ns) / SUM(SUM(duration_ns)) OVER (PARTITION BY run_id) AS share
FROM graph.critical_path
GROUP BY run_id, rank, kind
ORDER BY run_id, total_ms DESC, rank
