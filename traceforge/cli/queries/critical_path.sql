-- What set the run's length: the critical path by rank and cause.
SELECT run_id, rank, cause, duration_ns / 1e6 AS total_ms, share
FROM graph.critical_path_share
ORDER BY run_id, total_ms DESC, rank, cause
