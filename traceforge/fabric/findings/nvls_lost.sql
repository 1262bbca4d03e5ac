-- NVLink SHARP is missing on some GPUs while others have it: rings are used where the switch could reduce.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: NVLink SHARP is not available to {lost} of {asked} processes{of_ranks}, while others have it.
-- Next step: Check the fabric manager and the container's access to NVSwitch on these hosts ({hosts}).
WITH stated AS (
  SELECT p.run_id, p.process, p.host, n.is_available, n.source_id, r.line
  FROM raw.nccl_nvls AS n
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = n.source_id AND p.process_id = r.process_id
  WHERE n.event = 'support' AND n.is_available IS NOT NULL
)
SELECT
  s.run_id, 'host' AS subject_kind, MIN(s.host) FILTER (WHERE NOT is_available) AS subject,
  COUNT(DISTINCT s.process) FILTER (WHERE NOT is_available) AS lost,
  COUNT(DISTINCT s.process) AS asked,
  LIST(DISTINCT s.host) FILTER (WHERE NOT is_available) AS hosts,
  LIST(DISTINCT m.global_rank) FILTER (WHERE NOT is_available) AS ranks,
  MIN((s.source_id, s.line)) FILTER (WHERE NOT is_available) AS first,
  COUNT(DISTINCT (s.source_id, s.line)) FILTER (WHERE NOT is_available) AS citation_count
FROM stated AS s
LEFT JOIN fabric.member AS m ON m.run_id = s.run_id AND m.process = s.process
GROUP BY s.run_id
HAVING COUNT(*) FILTER (WHERE NOT is_available) > 0 AND COUNT(*) FILTER (WHERE is_available) > 0
