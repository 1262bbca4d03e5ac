-- Runs on the curve, and runs left out of it with the field in which they differ.
SELECT
  name,
  ranks,
  throughput,
  cv,
  is_used,
  field,
  detail
FROM forecast.member
WHERE run_id = $run_id
ORDER BY is_used DESC, ranks, name, field
