-- What each number of ranks brings and costs, at a price of a GPU-hour in thousandths.
WITH measured AS (
  SELECT ranks
  FROM forecast.scale
  WHERE run_id = $run_id AND model = 'measured'
),
planned AS (
  SELECT ranks FROM measured
  UNION
  SELECT CAST(factor * MAX(ranks) AS INTEGER)
  FROM measured
  CROSS JOIN (SELECT 2 AS factor UNION SELECT value FROM meta.threshold WHERE name = 'forecast.FURTHEST_VALUE')
  GROUP BY factor
)
SELECT
  ranks,
  extrapolated,
  throughput,
  low * ranks AS throughput_low,
  high * ranks AS throughput_high,
  efficiency,
  efficiency_low,
  efficiency_high,
  marginal_efficiency,
  work_share,
  1e6 * cost_per_sample * $price_per_1000_gpu_hours / 2500 AS cost,
  1e6 * cost_low * $price_per_1000_gpu_hours / 2500 AS cost_low,
  1e6 * cost_high * $price_per_1000_gpu_hours / 2500 AS cost_high
FROM forecast.scale
SEMI JOIN planned USING (ranks)
WHERE run_id = $run_id AND model = 'ensemble'
ORDER BY ranks
