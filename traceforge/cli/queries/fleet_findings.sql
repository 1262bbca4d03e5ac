-- Of a history: findings of high or medium confidence by cause and subject, with the runs that have them.
SELECT finding.mode, finding.cause, finding.subject_kind, COUNT(DISTINCT finding.run_key) AS runs,
  MEDIAN(finding.share) AS median_share, MAX(finding.delay_ns_per_iteration) / 1e6 AS largest_ms
FROM history.finding AS finding
WHERE finding.confidence IN ('high', 'medium')
GROUP BY finding.mode, finding.cause, finding.subject_kind
ORDER BY runs DESC, finding.mode, finding.cause
