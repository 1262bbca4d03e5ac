-- Evidence for and against each finding.
SELECT
  finding_id,
  direction,
  statement
FROM attribute.evidence
WHERE run_id = $run_id
ORDER BY finding_id, direction DESC, place, statement
