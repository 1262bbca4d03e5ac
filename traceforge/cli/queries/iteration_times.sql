-- Iteration times: median, tail and spread of each run, without warm-up and partial iterations.
SELECT run_id, COUNT(*) AS iterations, MEDIAN(duration_ns) / 1e6 AS p50_ms,
  QUANTILE_CONT(duration_ns, 0.95) / 1e6 AS p95_ms, MAX(duration_ns) / 1e6 AS max_ms,
  STDDEV_SAMP(duration_ns) / AVG(duration_ns) AS cv
FROM timeline.iteration
WHERE NOT is_warmup AND NOT is_partial
GROUP BY run_id
ORDER BY run_id
