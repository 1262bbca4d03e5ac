-- Findings with the delay they own.
SELECT
  finding_id,
  mode,
  cause,
  subject_kind,
  subject,
  ranks,
  host,
  delay_ns_per_iteration,
  delay_low_ns,
  delay_high_ns,
  share,
  confidence,
  gain_if_fixed,
  gain_if_all_fixed,
  first_iteration,
  last_iteration,
  iterations,
  affected_iterations,
  pattern,
  p_value,
  moment_iteration,
  moment_rank,
  summary,
  next_step
FROM attribute.finding
WHERE run_id = $run_id
ORDER BY finding_id
