-- Who owns how much of the time above reference, over all iterations.
SELECT run_id, mode, cause, rank, SUM(delay_ns) / 1e6 AS delay_ms, COUNT(DISTINCT iteration) AS iterations
FROM attribute.delay
GROUP BY run_id, mode, cause, rank
ORDER BY run_id, delay_ms DESC, mode, cause, rank
