-- Effect of possible changes at this run's scale.
SELECT
  ranks,
  kind,
  change,
  throughput_ratio,
  low,
  high,
  gpus,
  worth_per_hour * $price_per_1000_gpu_hours / 2500 AS worth_per_hour,
  break_even_price * $price_per_1000_gpu_hours / 2500 AS break_even_price,
  basis
FROM forecast.what_if
WHERE run_id = $run_id
ORDER BY kind <> 'fix', throughput_ratio DESC, change
