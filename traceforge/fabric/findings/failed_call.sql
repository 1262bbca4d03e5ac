-- Calls to the system, to CUDA or to another rank failed, and NCCL gave the operation up: each function that returned
-- says so. What fails without that was tried and done without. Logs of warnings alone do not say which it was: a notice,
-- unless NCCL's words, an exception or an error that ends the device's context do. One finding for each function of a
-- host that failed; what a process says after its device failed follows from that.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: {count:count call} failed on host {subject}{of_ranks}: {text}
-- Next step: Read the log of the rank at the other end: where a connection ends, its process usually ended first. Where
--   CUDA failed, look for Xid errors in the kernel's log of this host.
WITH raised AS (
  SELECT s.run_id FROM raw.nccl_exception JOIN meta.source AS s USING (source_id)
),
failed AS (
  SELECT p.run_id, p.host, p.process, e.source_id, e.record_id, e.place, e.text, r.line,
    CASE WHEN e.kind = 'cuda_failure' THEN 'CUDA ' || COALESCE(CAST(e.code AS VARCHAR), e.text)
      ELSE COALESCE(NULLIF(REGEXP_EXTRACT(e.text, 'Call to (\w+)', 1), ''), REGEXP_EXTRACT(e.text, '\w+')) END AS what,
    e.kind = 'cuda_failure' AND REGEXP_MATCHES(e.text, 'illegal (memory|instruction|address)|invalid (program|address)|'
      || 'misaligned address|launch (failure|timed out)|device-side assert|hardware stack|uncorrectable') AS ends_context,
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
),
first_end AS (
  SELECT source_id, process, MIN(record_id) AS record_id FROM failed WHERE ends_context GROUP BY source_id, process
),
told AS (
  SELECT f.run_id, f.host, ARG_MIN(f.text, f.record_id) AS text, ARG_MIN(f.place, f.record_id) AS place,
    BOOL_OR(f.is_given_up OR f.ends_context) AS is_problem, BOOL_OR(f.ends_context) AS ends_context,
    COUNT(DISTINCT (f.source_id, f.record_id)) AS count, LIST(DISTINCT m.global_rank) AS ranks,
    MIN((f.source_id, f.line)) AS first
  FROM failed AS f
  LEFT JOIN first_end AS d ON d.source_id = f.source_id AND d.process = f.process
  LEFT JOIN fabric.member AS m ON m.run_id = f.run_id AND m.process = f.process
  WHERE d.record_id IS NULL OR f.record_id <= d.record_id
  GROUP BY f.run_id, f.host, f.what
)
SELECT
  run_id, 'host' AS subject_kind, host AS subject, text[:200] AS text, count, ranks, 'error message' AS basis,
  CASE WHEN NOT is_problem THEN 'notice' END AS severity,
  CASE
    WHEN ends_context
      THEN 'NCCL only reports it: something that ran on this GPU before went wrong. CUDA_LAUNCH_BLOCKING=1 or '
        || 'compute-sanitizer finds a kernel that does; Xid errors in the kernel''s log of this host tell of a GPU.'
    WHEN text SIMILAR TO '.*out of memory.*'
      THEN 'Leave memory of the GPU for NCCL, which takes it outside of PyTorch''s allocator, and see whether another '
        || 'process uses this GPU.'
    WHEN text SIMILAR TO '.*operation not supported.*' AND place SIMILAR TO '.*(nvls|p2p).*'
      THEN 'NVLink between hosts, and NVLink SHARP on such machines, take the IMEX service and its channels in the '
        || 'container (in Kubernetes a ComputeDomain). NCCL_MNNVL_ENABLE=0 and NCCL_NVLS_ENABLE=0 do without.'
    WHEN text SIMILAR TO '.*(posix_fallocate|shm_open|ftruncate).*'
      THEN fabric.step_of_event('shared_memory')
    WHEN text SIMILAR TO '.* ibv_.*Cannot allocate memory.*'
      THEN 'Raise the limit of locked memory (`ulimit -l`, LimitMEMLOCK of the container runtime) on this host.'
    WHEN NOT is_problem
      THEN 'See whether the job went on: these logs hold warnings alone. NCCL_DEBUG=INFO shows whether NCCL gave up.'
  END AS next_step,
  first, count AS citation_count
FROM told
