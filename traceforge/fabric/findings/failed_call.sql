-- A call to the system, to CUDA or to another rank failed, and NCCL gave the operation up: each function that returned
-- says so. What fails without that was tried and done without.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: {count:count call} failed on host {subject}{of_ranks}: {text}
-- Next step: Read the log of the rank at the other end: where a connection ends, its process usually ended first. Where
--   CUDA failed, look for Xid errors in the kernel's log of this host.
WITH failed AS (
  SELECT p.run_id, p.host, p.process, e.source_id, e.record_id, e.kind, e.text, r.line
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.kind IN ('call_failed', 'cuda_failure') AND r.level = 'WARN'
    AND fabric.unwinds_after(e.source_id, r.process_id, r.tid, e.record_id)
)
SELECT
  f.run_id, 'host' AS subject_kind, f.host AS subject, ARG_MIN(f.text, f.record_id)[:200] AS text,
  COUNT(DISTINCT (f.source_id, f.record_id)) AS count, LIST(DISTINCT m.global_rank) AS ranks, 'error message' AS basis,
  MIN((f.source_id, f.line)) AS first,
  COUNT(DISTINCT (f.source_id, f.record_id)) AS citation_count
FROM failed AS f
LEFT JOIN fabric.member AS m ON m.run_id = f.run_id AND m.process = f.process
GROUP BY f.run_id, f.host
