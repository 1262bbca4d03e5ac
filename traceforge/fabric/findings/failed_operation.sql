-- PyTorch ended a rank with an error of NCCL, and no lines of NCCL itself say more, as nobody set NCCL_DEBUG=INFO.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: NCCL failed{of_ranks}: {meaning}{words}.
-- Next step: Run with NCCL_DEBUG=WARN: it has each rank say which call failed, and costs nothing.
WITH failed AS (
  SELECT s.run_id, e.source_id, e.record_id, r.line, COALESCE(e.rank, s.rank) AS rank, e.result, e.meaning, e.text,
    e.result = 'ncclRemoteError' OR CONTAINS(e.meaning, 'remote process exited')
      OR REGEXP_MATCHES(COALESCE(e.text, ''), '[Cc]onnection (closed|reset|refused)') AS is_consequence
  FROM raw.nccl_exception AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN meta.source AS s USING (source_id)
),
origin AS (
  -- A rank whose peer is gone did not begin it.
  SELECT * FROM failed AS f
  WHERE NOT COALESCE(f.is_consequence, false)
    OR NOT EXISTS (SELECT 1 FROM failed AS g WHERE g.run_id = f.run_id AND NOT COALESCE(g.is_consequence, false))
),
told AS (
  -- Other findings say more of these; a warning is one only where NCCL gave up on it.
  SELECT s.run_id
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN meta.source AS s USING (source_id)
  GROUP BY s.run_id
  HAVING BOOL_OR(e.kind IN ('completion_error', 'request_failed', 'duplicate_gpu', 'mismatched_collective',
      'mismatched_start', 'network_not_found'))
    OR (BOOL_OR(e.kind = 'unwinding') AND BOOL_OR(r.level = 'WARN'))
    OR BOOL_OR(
      e.kind IN ('call_failed', 'cuda_failure') AND r.level = 'WARN' AND fabric.warns_alone(e.source_id, r.process_id)
    )
)
SELECT
  run_id,
  CASE WHEN COUNT(DISTINCT rank) = 1 THEN 'rank' ELSE 'job' END AS subject_kind,
  CASE WHEN COUNT(DISTINCT rank) = 1 THEN CAST(MIN(rank) AS VARCHAR) ELSE 'all' END AS subject,
  ARG_MIN(meaning, (source_id, line)) AS meaning,
  COALESCE('; last error: ' || ARG_MIN(text, (source_id, line))[:200], '') AS words,
  LIST(DISTINCT rank) AS ranks,
  CASE
    WHEN BOOL_AND(COALESCE(is_consequence, false))
      THEN 'Look for what ended the rank at the other end: its output, the kernel''s log of its host (out of memory), '
        || 'the scheduler. NCCL_DEBUG=WARN has each rank say which call failed, and costs nothing.'
    WHEN BOOL_OR(result = 'ncclUnhandledCudaError')
      THEN 'Look for Xid errors in the kernel''s log of the host and for other processes on its GPU. '
        || 'NCCL_DEBUG=WARN has the rank say which call failed, and costs nothing.'
    WHEN BOOL_OR(result = 'ncclSystemError')
      THEN 'See whether the host has enough shared memory (/dev/shm), open files and locked memory (ulimit -n, -l). '
        || 'NCCL_DEBUG=WARN has the rank say which call failed, and costs nothing.'
    WHEN BOOL_OR(result = 'ncclInvalidUsage')
      THEN 'See whether two ranks use one GPU (CUDA_VISIBLE_DEVICES, the local rank), and whether all have the same '
        || 'version of NCCL.'
  END AS next_step,
  'error message' AS basis,
  MIN((source_id, line)) AS first,
  COUNT(DISTINCT (source_id, record_id)) AS citation_count
FROM origin
WHERE run_id NOT IN (SELECT run_id FROM told)
GROUP BY run_id
