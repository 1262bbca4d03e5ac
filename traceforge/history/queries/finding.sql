-- The findings of a run.
SELECT
  finding.finding_id,
  finding.mode,
  finding.cause,
  finding.subject_kind,
  finding.subject,
  finding.host,
  finding.confidence,
  finding.pattern,
  finding.delay_ns_per_iteration,
  finding.delay_low_ns,
  finding.delay_high_ns,
  finding.share,
  COALESCE(explanation.is_more_work, false) AS is_more_work,
  finding.summary
FROM attribute.finding AS finding
LEFT JOIN (
  SELECT finding_id, ARG_MIN(kind, place) IN ('more_work', 'new_operation') AS is_more_work
  FROM attribute.finding_difference
  WHERE run_id = $run_id AND explains
  GROUP BY finding_id
) AS explanation USING (finding_id)
WHERE finding.run_id = $run_id
ORDER BY finding.finding_id
