-- A NIC copies through host memory: connections of a fast network that do not use GPU Direct RDMA.
-- Mode: gpu_locality
-- Severity: problem
-- Summary: GPU Direct RDMA is off for {which} network connections{of_ranks}: they copy through host
--   memory{reason}.
-- Next step: Load nvidia-peermem (or use DMA-BUF), check ACS and IOMMU, and see which distance NCCL_NET_GDR_LEVEL
--   allows; where only some ranks are concerned, their GPU is far from its NIC. Some devices cannot do it (DGX Spark).
WITH refused AS (
  SELECT
    p.run_id,
    MIN(COALESCE(IF(g.reason SIMILAR TO '[0-9].*', 'distance ' || g.reason, NULLIF(g.reason, '')),
      'disabled for NIC ' || g.nic_name)) AS reason
  FROM raw.nccl_gdr AS g
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = g.source_id AND p.process_id = r.process_id
  WHERE NOT g.is_enabled
  GROUP BY p.run_id
)
SELECT
  e.run_id,
  CASE WHEN COUNT(*) FILTER (WHERE e.path_class = 'network_host') = COUNT(*) THEN 'job' ELSE 'link' END AS subject_kind,
  CASE
    WHEN COUNT(*) FILTER (WHERE e.path_class = 'network_host') = COUNT(*) THEN 'all'
    ELSE MIN(e.network || '/' || COALESCE(e.send_nic, e.receive_nic)) FILTER (WHERE e.path_class = 'network_host')
  END AS subject,
  COUNT(*) FILTER (WHERE e.path_class = 'network_host') AS host_copies,
  CASE WHEN COUNT(*) FILTER (WHERE e.path_class = 'network_host') = COUNT(*) THEN FORMAT('all {:,}', COUNT(*))
    ELSE FORMAT('{:,} of {:,}', COUNT(*) FILTER (WHERE e.path_class = 'network_host'), COUNT(*)) END AS which,
  LIST(DISTINCT m.global_rank) FILTER (WHERE e.path_class = 'network_host') AS ranks,
  CASE WHEN MIN(f.reason) IS NULL THEN '' ELSE '; NCCL says: ' || MIN(f.reason) END AS reason,
  CASE WHEN BOOL_AND(e.network LIKE '%Libfabric%' OR e.network = 'OFI') FILTER (WHERE e.path_class = 'network_host')
    THEN 'Over EFA it takes a type of instance that has it, and the driver and libfabric of a recent EFA installer: '
      || '`fi_info -p efa -c FI_HMEM` lists the devices that have it.'
  END AS next_step,
  MIN((e.source_id, e.line)) FILTER (WHERE e.path_class = 'network_host') AS first,
  COUNT(*) FILTER (WHERE e.path_class = 'network_host') AS citation_count
FROM fabric.edge AS e
LEFT JOIN fabric.member AS m
  ON m.run_id = e.run_id AND m.communicator_id = e.communicator_id AND m.rank = e.source_rank
LEFT JOIN refused AS f ON f.run_id = e.run_id
WHERE e.path_class IN ('network_host', 'network_gdr')
GROUP BY e.run_id
HAVING COUNT(*) FILTER (WHERE e.path_class = 'network_host') > 0
