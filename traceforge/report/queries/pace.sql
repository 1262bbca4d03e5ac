-- How long the iterations that count take, how much they vary (standard deviation over mean), and how often one begins.
SELECT
  COUNT(*) AS iterations,
  AVG(duration_ns) AS mean_ns,
  STDDEV_SAMP(duration_ns) / AVG(duration_ns) AS variation,
  (SELECT pace_ns FROM attribute.pace WHERE run_id = $run_id) AS pace_ns
FROM timeline.iteration
WHERE run_id = $run_id
  AND NOT is_warmup
  AND NOT is_partial
