-- The smallest delay that would have been found of each kind of culprit, whatever its cause; NULL where some would not.
SELECT
  subject_kind,
  pattern,
  MAX(smallest_delay_ns_per_iteration) AS smallest_ns,
  BOOL_AND(smallest_delay_ns_per_iteration IS NOT NULL) AS is_seen
FROM attribute.sight
WHERE run_id = $run_id
GROUP BY subject_kind, pattern
ORDER BY subject_kind, pattern
