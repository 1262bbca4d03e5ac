-- A setting fixes algorithm or protocol, or a large message travels by a protocol made for small ones.
-- Mode: runtime_control_plane
-- Severity: notice
-- Summary: {what}{of_ranks}.
-- Next step: Without the setting (and without a tuner plug-in) NCCL chooses by size; measure both with nccl-tests.
WITH setting AS (
  SELECT p.run_id, MIN(e.name || '=' || e.value) AS setting, MIN((e.source_id, r.line)) AS first,
    COUNT(*) AS citation_count
  FROM raw.nccl_environment AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.origin = 'environment'
    AND e.name IN ('NCCL_ALGO', 'NCCL_PROTO', 'NCCL_TUNER_PLUGIN', 'NCCL_TUNER_CONFIG_FILE')
    -- What a network plug-in sets, because its network takes nothing else, is no choice of a person.
    AND NOT EXISTS (
      SELECT 1 FROM raw.nccl_environment AS o
      WHERE o.source_id = e.source_id AND o.name = e.name AND o.origin = 'plugin'
    )
  GROUP BY p.run_id, e.name
),
slow AS (
  SELECT run_id, MAX(size_bytes) AS size_bytes, ARG_MAX(op, size_bytes) AS op,
    ARG_MAX((source_id, line), size_bytes) AS first, SUM(choices) AS citation_count
  FROM fabric.choice
  WHERE protocol = 'll'
    AND size_bytes >= (SELECT value FROM meta.threshold WHERE name = 'fabric.LARGE_MESSAGE_BYTES')
  GROUP BY run_id
)
SELECT run_id, 'job' AS subject_kind, 'all' AS subject, setting || ' overrides NCCL''s choice' AS what,
  first, citation_count
FROM setting
UNION ALL
SELECT run_id, 'job', 'all',
  COALESCE(op, 'a collective') || ' of ' || size_bytes ||
    ' bytes uses protocol LL, which moves half as much per byte sent',
  first, citation_count
FROM slow
