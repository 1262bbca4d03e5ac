-- Processes of one job run different versions of NCCL.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: Processes run different versions of NCCL: {versions}.
-- Next step: Use one image on all nodes; look for a second libnccl in LD_LIBRARY_PATH.
WITH counted AS (
  SELECT run_id, job, nccl_version, COUNT(DISTINCT process) AS processes, MIN(source_id) AS source_id
  FROM fabric.process
  LEFT JOIN fabric.job USING (run_id, process)
  WHERE nccl_version IS NOT NULL
  GROUP BY run_id, job, nccl_version
),
stated AS (
  SELECT v.source_id, v.version, MIN(r.line) AS line
  FROM raw.nccl_version AS v
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  WHERE v.component IN ('nccl', 'rccl')
  GROUP BY v.source_id, v.version
)
SELECT
  c.run_id, 'job' AS subject_kind, 'all' AS subject,
  LIST(c.nccl_version || ' (' || c.processes || ')' ORDER BY c.processes DESC, c.nccl_version) AS versions,
  ARG_MIN((s.source_id, s.line), c.processes) AS first, COUNT(*) AS citation_count
FROM counted AS c
JOIN stated AS s ON s.source_id = c.source_id AND s.version = c.nccl_version
GROUP BY c.run_id, c.job
HAVING COUNT(*) > 1
