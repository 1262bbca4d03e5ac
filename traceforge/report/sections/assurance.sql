-- The smallest delay that would have been found of each kind of culprit, whatever its cause; NULL where some would not.
SELECT
  subject_kind,
  pattern,
  MAX(smallest_delay_ns_per_iteration) AS smallest_ns,
  BOOL_AND(smallest_delay_ns_per_iteration IS NOT NULL) AS is_seen
FROM attribute.sight
WHERE run_id = $run_id
  -- Of the whole job only transfers are told: of other causes all ranks would be culprits at once.
  AND (subject_kind <> 'job' OR cause = 'slow_transfer')
GROUP BY subject_kind, pattern
ORDER BY subject_kind, pattern
