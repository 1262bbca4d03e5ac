-- Pacing policies replayed on this run.
SELECT
  policy,
  parameters,
  throughput_ratio,
  throughput_ratio_low,
  throughput_ratio_high,
  throughput_ratio_next_low,
  throughput_ratio_next_high,
  cv,
  p50_ns,
  p95_ns,
  p99_ns,
  gain_ceiling,
  verdict,
  reason
FROM replay.outcome
WHERE run_id = $run_id
ORDER BY policy <> 'none', throughput_ratio DESC NULLS LAST, policy, parameters
