-- Live pacing: measured by blocks that took turns, and predicted.
SELECT
  policy,
  is_dry_run,
  pairs,
  throughput_ratio,
  throughput_ratio_low,
  throughput_ratio_high,
  delay_ns,
  off_from_iteration,
  foretold_ratio,
  foretold_ratio_low,
  foretold_ratio_high,
  foretold_verdict,
  agrees
FROM replay.paced
WHERE run_id = $run_id
