-- Forecast at other numbers of ranks.
SELECT
  model,
  ranks,
  value,
  low,
  high,
  extrapolated,
  throughput,
  efficiency
FROM forecast.scale
WHERE run_id = $run_id
ORDER BY model, ranks
