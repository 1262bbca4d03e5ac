-- What each number of ranks brings and costs, at a price of so many thousandths an hour of a GPU.
SELECT
  ranks,
  extrapolated,
  throughput,
  throughput_low,
  throughput_high,
  efficiency,
  efficiency_low,
  efficiency_high,
  marginal_efficiency,
  work_share,
  checkpoint_interval_s,
  1e6 * cost_per_sample * $price_per_1000_gpu_hours / 2500 AS cost,
  1e6 * cost_low * $price_per_1000_gpu_hours / 2500 AS cost_low,
  1e6 * cost_high * $price_per_1000_gpu_hours / 2500 AS cost_high
FROM forecast.plan
WHERE run_id = $run_id
ORDER BY ranks
