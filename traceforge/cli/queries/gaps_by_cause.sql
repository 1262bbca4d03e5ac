-- Why devices had nothing to do: gaps by rank and cause.
SELECT run_id, rank, cause, gaps, total_gap_ns / 1e6 AS total_ms, longest_gap_ns / 1e6 AS longest_ms, share
FROM timeline.gap_cause
ORDER BY run_id, total_ms DESC, rank, cause
