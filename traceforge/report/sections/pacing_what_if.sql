-- Changes of the job replayed on this run, best first.
SELECT
  edit,
  parameters,
  throughput_ratio,
  throughput_ratio_low,
  throughput_ratio_high,
  saved_ns_per_iteration,
  reason
FROM replay.what_if
WHERE run_id = $run_id
ORDER BY throughput_ratio DESC NULLS LAST, edit, parameters
