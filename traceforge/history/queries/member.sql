-- Hosts and NICs of a run, and whether a finding of high or medium confidence accuses them.
WITH accusation AS (
  SELECT finding.subject_kind, finding.subject, finding.host
  FROM attribute.finding AS finding
  WHERE finding.run_id = $run_id
    AND finding.confidence IN ('high', 'medium')
    -- Of a rank that is given more to do, no host is guilty.
    AND finding.finding_id NOT IN (
      SELECT finding_id FROM attribute.finding_difference
      WHERE run_id = $run_id AND explains
      GROUP BY finding_id
      HAVING ARG_MIN(kind, place) IN ('more_work', 'new_operation')
    )
),
nic AS (
  SELECT DISTINCT host, host || ' ' || COALESCE(name, CAST(nic AS VARCHAR)) AS name
  FROM fabric.nic
  WHERE run_id = $run_id AND host IS NOT NULL
)
SELECT
  'host' AS kind,
  host AS name,
  LIST(DISTINCT rank ORDER BY rank) AS ranks,
  host IN (SELECT host FROM accusation WHERE host IS NOT NULL AND subject_kind IN ('rank', 'ranks', 'host', 'nic'))
    OR host IN (SELECT subject FROM accusation WHERE subject_kind = 'host') AS is_accused
FROM align.rank
WHERE run_id = $run_id AND host IS NOT NULL
GROUP BY host
UNION ALL
SELECT
  'nic' AS kind,
  nic.name,
  (SELECT LIST(rank ORDER BY rank) FROM align.rank WHERE run_id = $run_id AND host = nic.host) AS ranks,
  nic.name IN (SELECT subject FROM accusation WHERE subject_kind = 'nic') AS is_accused
FROM nic
ORDER BY kind, name
