-- How steady the run is.
SELECT
  measure,
  value,
  low,
  high,
  n,
  meaning
FROM forecast.stability
WHERE run_id = $run_id
ORDER BY measure
