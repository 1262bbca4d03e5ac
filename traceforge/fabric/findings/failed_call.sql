-- A call to the system, to CUDA or to another rank failed, and NCCL gave the operation up: each function that returned
-- says so. What fails without that was tried and done without. Logs of warnings alone do not say which it was: a notice,
-- unless NCCL's words or an exception do.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: {count:count call} failed on host {subject}{of_ranks}: {text}
-- Next step: Read the log of the rank at the other end: where a connection ends, its process usually ended first. Where
--   CUDA failed, look for Xid errors in the kernel's log of this host.
WITH raised AS (
  SELECT s.run_id FROM raw.nccl_exception JOIN meta.source AS s USING (source_id)
),
failed AS (
  SELECT p.run_id, p.host, p.process, e.source_id, e.record_id, e.text, r.line,
    fabric.unwinds_after(e.source_id, r.process_id, r.tid, e.record_id)
      OR CONTAINS(e.text, 'exceeded error retry count')
      OR p.run_id IN (SELECT x.run_id FROM raised AS x) AS is_given_up
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.kind IN ('call_failed', 'cuda_failure') AND r.level = 'WARN'
    AND (
      fabric.unwinds_after(e.source_id, r.process_id, r.tid, e.record_id)
      OR fabric.warns_alone(e.source_id, r.process_id)
    )
)
SELECT
  f.run_id, 'host' AS subject_kind, f.host AS subject, ARG_MIN(f.text, f.record_id)[:200] AS text,
  COUNT(DISTINCT (f.source_id, f.record_id)) AS count, LIST(DISTINCT m.global_rank) AS ranks, 'error message' AS basis,
  CASE WHEN NOT BOOL_OR(f.is_given_up) THEN 'notice' END AS severity,
  CASE
    WHEN ARG_MIN(f.text, f.record_id) SIMILAR TO '.*(posix_fallocate|shm_open|ftruncate).*'
      THEN 'See whether the host, or the container, has enough shared memory (/dev/shm, --shm-size).'
    WHEN ARG_MIN(f.text, f.record_id) SIMILAR TO '.* ibv_.*Cannot allocate memory.*'
      THEN 'Raise the limit of locked memory (`ulimit -l`, LimitMEMLOCK of the container runtime) on this host.'
    WHEN NOT BOOL_OR(f.is_given_up)
      THEN 'See whether the job went on: these logs hold warnings alone. NCCL_DEBUG=INFO shows whether NCCL gave up.'
  END AS next_step,
  MIN((f.source_id, f.line)) AS first,
  COUNT(DISTINCT (f.source_id, f.record_id)) AS citation_count
FROM failed AS f
LEFT JOIN fabric.member AS m ON m.run_id = f.run_id AND m.process = f.process
GROUP BY f.run_id, f.host
