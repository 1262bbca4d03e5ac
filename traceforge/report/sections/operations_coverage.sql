-- How much of the time of device work belongs to no operation, and why.
SELECT reason, SUM(events) AS events, SUM(duration_ns) / SUM(SUM(duration_ns)) OVER () AS share
FROM operation.coverage
WHERE run_id = $run_id AND is_counted
GROUP BY reason
ORDER BY reason
