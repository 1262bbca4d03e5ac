-- A NIC gave up an operation. Operations flushed as a consequence (status 5) count only where nothing else was logged.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: {count:count network operation} ended in error {code}/{vendor_error} ({meaning}){toward}{of_ranks}.
-- Next step: Look at the counters of this NIC and of its switch port (link_downed, symbol errors, PFC, ECN); for retry
--   timeouts on RoCE also at NCCL_IB_GID_INDEX, NCCL_IB_TC and the peer, which may simply be gone.
WITH failed AS (
  SELECT p.run_id, p.host, p.process, e.source_id, e.record_id, e.nic_name, e.code, e.vendor_error, e.peer, r.line
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.kind = 'completion_error'
),
origin AS (
  SELECT * FROM failed AS f
  WHERE f.code IS DISTINCT FROM 5 OR NOT EXISTS (SELECT 1 FROM failed AS g WHERE g.run_id = f.run_id AND g.code <> 5)
)
SELECT
  o.run_id,
  CASE WHEN MIN(o.nic_name) IS NULL THEN 'host' ELSE 'link' END AS subject_kind,
  MIN(o.host) || COALESCE(' ' || MIN(o.nic_name), '') AS subject,
  COUNT(DISTINCT (o.source_id, o.record_id)) AS count,
  o.code, COALESCE(CAST(o.vendor_error AS VARCHAR), 'not stated') AS vendor_error,
  CASE o.code
    WHEN 12 THEN 'retry timeout: the fabric dropped it, or the peer is gone'
    WHEN 4 THEN 'local protection: the NIC may not reach this memory; GPU Direct RDMA, ACS or IOMMU'
    WHEN 5 THEN 'flushed after another error that is not in these logs'
    WHEN 10 THEN 'remote access refused'
    WHEN 13 THEN 'receiver not ready'
    ELSE 'see the InfiniBand verbs manual'
  END AS meaning,
  COALESCE(' towards ' || MIN(o.peer), '') AS toward,
  LIST(DISTINCT m.global_rank) AS ranks,
  'error message' AS basis,
  MIN((o.source_id, o.line)) AS first,
  COUNT(DISTINCT (o.source_id, o.record_id)) AS citation_count
FROM origin AS o
LEFT JOIN fabric.member AS m ON m.run_id = o.run_id AND m.process = o.process
GROUP BY o.run_id, o.host, o.nic_name, o.code, o.vendor_error
