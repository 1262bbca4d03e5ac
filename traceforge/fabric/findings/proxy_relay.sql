-- Data pass another GPU on their way to a NIC (PXN). Intended on rail fabrics; elsewhere it costs an NVLink hop.
-- Mode: gpu_locality
-- Severity: notice
-- Summary: {relayed} of {edges} connections that leave a node pass through another rank's GPU (PXN){of_ranks}.
-- Next step: On a rail fabric this is intended; otherwise check which NIC is near to these ranks, or set
--   NCCL_PXN_DISABLE=1.
SELECT
  e.run_id, 'job' AS subject_kind, 'all' AS subject,
  COUNT(*) FILTER (WHERE e.proxy_rank IS NOT NULL) AS relayed,
  COUNT(*) AS edges,
  LIST(DISTINCT m.global_rank) FILTER (WHERE e.proxy_rank IS NOT NULL) AS ranks,
  MIN((e.source_id, e.line)) FILTER (WHERE e.proxy_rank IS NOT NULL) AS first,
  COUNT(*) FILTER (WHERE e.proxy_rank IS NOT NULL) AS citation_count
FROM fabric.edge AS e
LEFT JOIN fabric.member AS m
  ON m.run_id = e.run_id AND m.communicator_id = e.communicator_id AND m.rank = e.source_rank
WHERE e.transport = 'NET' AND e.connection_index = 0
GROUP BY e.run_id
HAVING COUNT(*) FILTER (WHERE e.proxy_rank IS NOT NULL) > 0
