-- Terms of a mean iteration that a scaling model is made of.
SELECT
  term,
  duration_ns_per_iteration,
  share
FROM forecast.term
WHERE run_id = $run_id
ORDER BY duration_ns_per_iteration DESC, term
