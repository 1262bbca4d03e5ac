-- Measured runs on the curve.
SELECT
  point.run_name AS name,
  scale.ranks,
  scale.throughput,
  point.cv
FROM forecast.scale
JOIN forecast.point ON point.run_id = scale.measured_run_id
WHERE scale.run_id = $run_id
ORDER BY scale.ranks, name
