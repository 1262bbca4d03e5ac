-- Parameters of pacing policies tried on this run, best throughput first.
SELECT
  policy,
  parameters,
  throughput_ratio,
  throughput_ratio_low,
  throughput_ratio_high,
  cv,
  cv_low,
  cv_high,
  verdict,
  is_on_front
FROM replay.sweep
WHERE run_id = $run_id AND cv IS NOT NULL
ORDER BY throughput_ratio DESC, cv, policy, parameters
