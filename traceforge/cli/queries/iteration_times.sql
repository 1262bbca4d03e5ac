-- Iteration times: median, tail and spread of each run, and where they change most (five iterations against five).
WITH judged AS (
  SELECT run_id, iteration, duration_ns
  FROM timeline.iteration
  WHERE NOT is_warmup AND NOT is_partial
),
around AS (
  SELECT run_id, iteration,
    AVG(duration_ns) OVER following - AVG(duration_ns) OVER preceding AS change_ns,
    SQRT(VAR_SAMP(duration_ns) OVER following + VAR_SAMP(duration_ns) OVER preceding) AS scatter_ns
  FROM judged
  WINDOW
    following AS (PARTITION BY run_id ORDER BY iteration ROWS BETWEEN CURRENT ROW AND 4 FOLLOWING),
    preceding AS (PARTITION BY run_id ORDER BY iteration ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING)
),
changed AS (
  SELECT run_id, ARG_MAX(iteration, ABS(change_ns)) AS change_at, ARG_MAX(change_ns, ABS(change_ns)) AS change_ns,
    ARG_MAX(scatter_ns, ABS(change_ns)) AS scatter_ns
  FROM around
  WHERE scatter_ns IS NOT NULL
  GROUP BY run_id
)
SELECT j.run_id, COUNT(*) AS iterations, MEDIAN(j.duration_ns) / 1e6 AS p50_ms,
  QUANTILE_CONT(j.duration_ns, 0.95) / 1e6 AS p95_ms, MAX(j.duration_ns) / 1e6 AS max_ms,
  STDDEV_SAMP(j.duration_ns) / AVG(j.duration_ns) AS cv, ANY_VALUE(c.change_at) AS largest_change_at,
  ANY_VALUE(c.change_ns) / 1e6 AS largest_change_ms, ANY_VALUE(c.scatter_ns) / 1e6 AS scatter_there_ms
FROM judged AS j
LEFT JOIN changed AS c USING (run_id)
GROUP BY j.run_id
ORDER BY j.run_id
