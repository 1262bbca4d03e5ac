-- The models, and how well each predicted the largest scale from the others.
SELECT
  model,
  parameters,
  backtest,
  weight,
  is_used
FROM forecast.fit
WHERE run_id = $run_id AND model <> 'ensemble'
ORDER BY weight DESC, model
