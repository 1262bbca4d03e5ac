-- NCCL or RCCL warns of something that no other rule reads, and went on as far as the logs go.
-- Mode: runtime_control_plane
-- Severity: notice
-- Summary: {count:count warning} on {on_hosts}{of_ranks}: {text}
-- Next step: Look for the message in the documentation of NCCL and among the issues of NVIDIA/nccl or ROCm/rccl.
WITH warned AS (
  SELECT p.run_id, p.host, p.process, e.source_id, e.record_id, e.kind, r.line, e.text,
    REGEXP_REPLACE(e.text, '0x[0-9a-f]+|[0-9]+', '#', 'g') AS template
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.kind IN ('warning', 'shared_memory', 'no_path') AND r.level = 'WARN'
    -- What NCCL gave up on is another finding.
    AND NOT fabric.unwinds_after(e.source_id, r.process_id, r.tid, e.record_id)
)
SELECT
  w.run_id, 'host' AS subject_kind, MIN(w.host) AS subject, COUNT(DISTINCT w.host) AS hosts,
  ARG_MIN(w.text, (w.source_id, w.record_id))[:200] AS text, COUNT(DISTINCT (w.source_id, w.record_id)) AS count,
  CASE
    WHEN CONTAINS(MIN(w.text), 'NUMA auto balancing')
      THEN 'Switch it off on these hosts (`sysctl kernel.numa_balancing=0`): it moves pages of the processes while they '
        || 'communicate.'
    WHEN MIN(w.kind) = 'shared_memory'
      THEN fabric.step_of_event('shared_memory')
  END AS next_step,
  LIST(DISTINCT m.global_rank) AS ranks, 'error message' AS basis,
  MIN((w.source_id, w.line)) AS first, COUNT(DISTINCT (w.source_id, w.record_id)) AS citation_count
FROM warned AS w
LEFT JOIN fabric.member AS m ON m.run_id = w.run_id AND m.process = w.process
GROUP BY w.run_id, w.template
