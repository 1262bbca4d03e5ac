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
  source.path,
  measured.summary AS measured
FROM fabric.finding AS finding
JOIN meta.source AS source
  ON source.source_id = finding.source_id
LEFT JOIN (
  SELECT joined.run_id, joined.fabric_finding_id, ARG_MIN(delay.summary, joined.finding_id) AS summary
  FROM attribute.configuration AS joined
  JOIN attribute.finding AS delay
    ON delay.run_id = joined.run_id AND delay.finding_id = joined.finding_id
  GROUP BY joined.run_id, joined.fabric_finding_id
) AS measured
  ON measured.run_id = finding.run_id AND measured.fabric_finding_id = finding.finding_id
WHERE finding.run_id = $run_id
ORDER BY finding.finding_id
