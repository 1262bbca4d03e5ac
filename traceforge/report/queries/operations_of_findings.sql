-- The operation that explains each finding, where one does: what the culprit does more of, or more slowly, than its peer.
SELECT
  finding_id,
  kind,
  name,
  calls,
  peer_calls,
  call_duration_ns,
  peer_call_duration_ns
FROM attribute.finding_difference
WHERE run_id = $run_id
  AND explains
  AND kind <> 'gap'
QUALIFY ROW_NUMBER() OVER (PARTITION BY finding_id ORDER BY place) = 1
ORDER BY finding_id
