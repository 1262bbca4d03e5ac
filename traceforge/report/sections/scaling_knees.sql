-- Where one more rank stops paying.
SELECT
  knee,
  ranks,
  low,
  high
FROM forecast.knee
WHERE run_id = $run_id
ORDER BY knee
