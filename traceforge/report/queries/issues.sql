-- Everything skipped, repaired, guessed or found inconsistent, summed over files.
SELECT
  stage,
  code,
  severity,
  CAST(SUM(count) AS BIGINT) AS count,
  CAST(SUM(lost_events) AS BIGINT) AS lost_events,
  COUNT(DISTINCT source_id) AS files,
  MIN(first_at) AS first_at,
  MIN(detail) AS detail
FROM meta.issue
WHERE run_id = $run_id
GROUP BY stage, code, severity
ORDER BY severity, code, stage
