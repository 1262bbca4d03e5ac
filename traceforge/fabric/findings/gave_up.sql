-- NCCL gave up for a reason that no other rule names: the warning right before the first function of a thread returned
-- an error, or one after which none goes on.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: NCCL gave up on host {subject}{of_ranks}: {text}
-- Next step: Compare the versions of NCCL and the NCCL_* settings of all ranks, and look for the message among the issues
--   of NVIDIA/nccl.
WITH event AS (
  SELECT p.run_id, p.host, p.process, e.source_id, e.record_id, r.process_id, r.tid, r.level, r.line, e.kind, e.text
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
),
thread AS (
  SELECT source_id, process_id, tid, MIN(record_id) AS returned
  FROM event
  WHERE kind = 'unwinding'
  GROUP BY source_id, process_id, tid
),
last_warning AS (
  SELECT w.*, t.returned
  FROM thread AS t
  JOIN event AS w
    ON w.source_id = t.source_id AND w.process_id = t.process_id AND w.tid = t.tid AND w.record_id < t.returned
    AND w.level = 'WARN'
  QUALIFY ROW_NUMBER() OVER (PARTITION BY t.source_id, t.process_id, t.tid ORDER BY w.record_id DESC) = 1
),
reason AS (
  SELECT w.*
  FROM last_warning AS w
  WHERE NOT EXISTS (
    -- What a thread says in between comes from later work.
    SELECT 1
    FROM raw.nccl_record AS r
    WHERE r.source_id = w.source_id AND r.process_id = w.process_id AND r.tid = w.tid
      AND r.record_id > w.record_id AND r.record_id < w.returned
  ) AND NOT EXISTS (
    -- A process that makes a communicator afterwards did without what failed.
    SELECT 1
    FROM raw.nccl_communicator AS c
    WHERE c.source_id = w.source_id AND c.process_id = w.process_id AND c.complete_record_id > w.returned
  ) AND NOT EXISTS (
    -- Findings of these kinds say more.
    SELECT 1
    FROM event AS o
    WHERE o.source_id = w.source_id AND o.process_id = w.process_id AND o.tid = w.tid AND o.record_id < w.returned
      AND o.kind IN ('call_failed', 'cuda_failure', 'completion_error', 'request_failed', 'connection_closed',
        'async_event', 'device_failed')
  )
  UNION ALL
  SELECT *, NULL
  FROM event
  WHERE kind IN ('duplicate_gpu', 'mismatched_collective', 'mismatched_start', 'network_not_found') AND level = 'WARN'
)
SELECT
  w.run_id, 'host' AS subject_kind, w.host AS subject,
  ARG_MIN(w.text, (w.source_id, w.record_id))[:200] AS text,
  CASE WHEN ARG_MIN(w.text, (w.source_id, w.record_id)) LIKE 'MNNVL%'
    THEN 'See whether nvidia-imex runs on these hosts, all of one NVLink domain, and whether its channels are in the '
      || 'containers (in Kubernetes a ComputeDomain). NCCL_MNNVL_ENABLE=0 does without, over the network.'
  ELSE CASE ARG_MIN(w.kind, (w.source_id, w.record_id))
    WHEN 'duplicate_gpu' THEN 'Give each rank a GPU of its own: the local rank must choose the device before NCCL '
      || 'starts (torch.cuda.set_device), or CUDA_VISIBLE_DEVICES must differ.'
    WHEN 'mismatched_collective' THEN 'Find where ranks call different collectives, or with different sizes or types. '
      || 'Otherwise compare the versions of NCCL and the NCCL_* settings of all ranks.'
    WHEN 'mismatched_start' THEN 'Give all ranks of the job the same world size and each its own rank; see whether ranks '
      || 'of an earlier attempt, or of another job with the same address, still live, and whether all have the same '
      || 'version of NCCL.'
    WHEN 'shared_memory' THEN fabric.step_of_event('shared_memory')
    WHEN 'network_not_found' THEN 'NCCL found no network that works. Where NCCL_NET, also in the file that NCCL_CONF_FILE '
      || 'names, asks for one, it takes no other: its plug-in, libibverbs with the driver of the NIC, and the devices '
      || '(/dev/infiniband) must be in the container. Otherwise see which interfaces NCCL_SOCKET_IFNAME allows.'
  END END AS next_step,
  LIST(DISTINCT m.global_rank) AS ranks, 'error message' AS basis,
  MIN((w.source_id, w.line)) AS first, COUNT(DISTINCT (w.source_id, w.record_id)) AS citation_count
FROM reason AS w
LEFT JOIN fabric.member AS m ON m.run_id = w.run_id AND m.process = w.process
GROUP BY w.run_id, w.host
