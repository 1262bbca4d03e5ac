-- How late the slowest rank will be at more ranks, from this run alone.
SELECT
  ranks,
  method,
  step_quantile,
  slowest_ns,
  low_ns,
  high_ns,
  persistent_share,
  refusal
FROM forecast.outlook
WHERE run_id = $run_id
ORDER BY ranks
