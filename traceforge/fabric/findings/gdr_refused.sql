-- The plug-in of the network does without GPU Direct RDMA, and the logs end before NCCL connects: late since 2.22.
-- Mode: gpu_locality
-- Severity: notice
-- Summary: On {on_hosts}{of_ranks}, the network's plug-in does without GPU Direct RDMA: {reason}.
-- Next step: Over EFA it takes a type of instance that has it, and the driver and libfabric of a recent EFA installer:
--   `fi_info -p efa -c FI_HMEM` lists the devices that have it.
WITH connected AS (
  -- Of these the connections tell.
  SELECT DISTINCT run_id FROM fabric.edge WHERE transport = 'NET'
),
spread AS (
  SELECT DISTINCT run_id FROM fabric.communicator WHERE node_count > 1
)
SELECT
  p.run_id, 'host' AS subject_kind, MIN(p.host) AS subject, COUNT(DISTINCT p.host) AS hosts, MIN(g.reason) AS reason,
  LIST(DISTINCT m.global_rank) AS ranks, MIN((g.source_id, r.line)) AS first,
  COUNT(DISTINCT (g.source_id, g.record_id)) AS citation_count
FROM raw.nccl_gdr AS g
JOIN raw.nccl_record AS r USING (source_id, record_id)
JOIN fabric.process AS p ON p.source_id = g.source_id AND p.process_id = r.process_id
LEFT JOIN fabric.member AS m ON m.run_id = p.run_id AND m.process = p.process
-- Of the plug-in as a whole, not of one GPU or NIC.
WHERE NOT g.is_enabled AND g.gpu IS NULL AND g.nic IS NULL AND g.nic_name IS NULL AND g.reason <> ''
  AND p.run_id IN (SELECT s.run_id FROM spread AS s) AND p.run_id NOT IN (SELECT c.run_id FROM connected AS c)
GROUP BY p.run_id
