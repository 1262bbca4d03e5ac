-- Delay over all iterations but warm-up, credits left out, and the part of it that no cause owns.
WITH owned AS (
  SELECT
    mode,
    GREATEST(0, SUM(delay_ns)) AS delay_ns
  FROM attribute.delay
  JOIN timeline.iteration USING (run_id, iteration)
  WHERE run_id = $run_id
    AND NOT is_warmup
  GROUP BY mode, cause, rank
)
SELECT
  CAST(SUM(delay_ns) AS BIGINT) AS delay_ns,
  CAST(SUM(delay_ns) FILTER (mode = 'unexplained') AS BIGINT) AS unexplained_ns,
  CAST(COALESCE(SUM(delay_ns) FILTER (mode = 'unexplained'), 0) AS BIGINT) / NULLIF(SUM(delay_ns), 0) AS share
FROM owned
