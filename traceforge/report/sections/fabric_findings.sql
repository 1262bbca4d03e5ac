-- Configuration findings, problems first, each with the place in the logs that shows it.
SELECT
  finding.finding_id,
  finding.code,
  finding.mode,
  finding.severity,
  finding.subject_kind,
  finding.subject,
  finding.summary,
  finding.next_step,
  finding.basis,
  finding.citation_count,
  finding.line,
  source.path
FROM fabric.finding AS finding
JOIN meta.source AS source
  ON source.source_id = finding.source_id
WHERE finding.run_id = $run_id
ORDER BY finding.finding_id
