"""The NIC gave up an operation. Follow-ups (status 5) are named only where nothing else was logged."""

from traceforge.fabric.rule import Rule

RULE = Rule(
    mode="fabric_contention",
    severity="problem",
    summary="{count:count network operation} ended in error {code}/{vendor_error} ({meaning}){toward}{of_ranks}.",
    next_step="Look at the counters of this NIC and of its switch port (link_downed, symbol errors, PFC, ECN); for "
    "retry time-"
    "outs on RoCE also at NCCL_IB_GID_INDEX, NCCL_IB_TC and the peer, which may simply be gone.",
    query="""
WITH failed AS (
  SELECT p.run_id, p.host, p.process, e.*, r.line
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.kind = 'completion_error'
),
first AS (
  SELECT * FROM failed AS f
  WHERE f.code IS DISTINCT FROM 5 OR NOT EXISTS (SELECT 1 FROM failed AS g WHERE g.run_id = f.run_id AND g.code <> 5)
)
SELECT
  f.run_id,
  CASE WHEN MIN(f.nic_name) IS NULL THEN 'host' ELSE 'link' END AS subject_kind,
  MIN(f.host) || COALESCE(' ' || MIN(f.nic_name), '') AS subject,
  COUNT(DISTINCT (f.source_id, f.record_id)) AS count,
  f.code, COALESCE(CAST(f.vendor_error AS VARCHAR), 'not stated') AS vendor_error,
  CASE f.code
    WHEN 12 THEN 'retry time-out: the fabric dropped it, or the peer is gone'
    WHEN 4 THEN 'local protection: the NIC may not reach this memory; GPU Direct RDMA, ACS or IOMMU'
    WHEN 5 THEN 'flushed after another error that is not in these logs'
    WHEN 10 THEN 'remote access refused'
    WHEN 13 THEN 'receiver not ready'
    ELSE 'see the InfiniBand verbs manual'
  END AS meaning,
  COALESCE(' towards ' || MIN(f.peer), '') AS toward,
  LIST(DISTINCT m.global_rank) AS ranks,
  'error message' AS basis,
  ARG_MIN(f.source_id, (f.source_id, f.line)) AS source_id, ARG_MIN(f.line, (f.source_id, f.line)) AS line,
  COUNT(DISTINCT (f.source_id, f.record_id)) AS citation_count
FROM first AS f
LEFT JOIN fabric.member AS m ON m.run_id = f.run_id AND m.process = f.process
GROUP BY f.run_id, f.host, f.nic_name, f.code, f.vendor_error
""",
)
