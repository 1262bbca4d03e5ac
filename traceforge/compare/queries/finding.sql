-- What stands out of a run, with what it costs an iteration, ns.
SELECT
  f.mode, f.cause, f.subject_kind, f.subject, f.summary, f.pattern,
  f.delay_ns_per_iteration AS delay_ns, f.delay_low_ns AS low_ns, f.delay_high_ns AS high_ns
FROM attribute.finding AS f
WHERE f.run_id = $run_id AND f.confidence <> 'low'
ORDER BY f.finding_id
