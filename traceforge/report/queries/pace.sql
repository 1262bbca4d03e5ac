-- How long the iterations that count take, and how much they vary: standard deviation over mean.
SELECT
  COUNT(*) AS iterations,
  AVG(duration_ns) AS mean_ns,
  STDDEV_SAMP(duration_ns) / AVG(duration_ns) AS variation
FROM timeline.iteration
WHERE run_id = $run_id
  AND NOT is_warmup
  AND NOT is_partial
