-- A NIC copies through host memory: connections of a fast network that do not use GPU Direct RDMA at one end or both.
-- Mode: gpu_locality
-- Severity: problem
-- Summary: GPU Direct RDMA is off{place} for {which} network connections{of_ranks}: they copy through host
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
),
ended AS (
  SELECT n.*, e.path_class = 'network_host' AS copies
  FROM fabric.network_end AS n
  JOIN fabric.edge AS e USING (run_id, communicator_id, channel, connection_index, source_rank, target_rank)
  WHERE e.path_class IN ('network_host', 'network_gdr')
),
told AS (
  SELECT run_id,
    COUNT(DISTINCT (communicator_id, channel, connection_index, source_rank, target_rank)) AS edges,
    COUNT(DISTINCT (communicator_id, channel, connection_index, source_rank, target_rank)) FILTER (WHERE copies)
      AS host_copies,
    LIST(DISTINCT global_rank) FILTER (WHERE NOT is_gdr) AS ranks,
    LIST_SORT(LIST(DISTINCT host) FILTER (WHERE NOT is_gdr)) AS hosts,
    COUNT(DISTINCT host) AS hosts_all,
    -- Whole hosts are named as such, not where some ranks of a host copy and others do not.
    COUNT(DISTINCT host) FILTER (WHERE is_gdr) + COUNT(DISTINCT host) FILTER (WHERE NOT is_gdr) = COUNT(DISTINCT host)
      AND BOOL_OR(is_gdr) AS is_of_hosts,
    MIN(network || '/' || nic) FILTER (WHERE NOT is_gdr) AS device,
    BOOL_AND(network LIKE '%Libfabric%' OR network = 'OFI') FILTER (WHERE NOT is_gdr) AS is_efa,
    MIN((source_id, line)) FILTER (WHERE NOT is_gdr) AS first
  FROM ended
  GROUP BY run_id
)
SELECT
  t.run_id,
  CASE WHEN t.is_of_hosts AND LEN(t.hosts) = 1 THEN 'host'
    WHEN t.host_copies = t.edges THEN 'job' ELSE 'link' END AS subject_kind,
  CASE WHEN t.is_of_hosts AND LEN(t.hosts) = 1 THEN t.hosts[1]
    WHEN t.host_copies = t.edges THEN 'all' ELSE t.device END AS subject,
  t.host_copies,
  CASE WHEN t.host_copies = t.edges THEN FORMAT('all {:,}', t.edges)
    ELSE FORMAT('{:,} of {:,}', t.host_copies, t.edges) END AS which,
  CASE WHEN NOT t.is_of_hosts THEN ''
    WHEN LEN(t.hosts) = 1 THEN ' at the end of host ' || t.hosts[1]
    ELSE FORMAT(' at the ends of {} of {} hosts, such as {},', LEN(t.hosts), t.hosts_all, t.hosts[1]) END AS place,
  t.ranks,
  CASE WHEN f.reason IS NULL THEN '' ELSE '; NCCL says: ' || f.reason END AS reason,
  CASE WHEN t.is_efa
    THEN 'Over EFA it takes a type of instance that has it, and the driver and libfabric of a recent EFA installer: '
      || '`fi_info -p efa -c FI_HMEM` lists the devices that have it.'
    WHEN t.is_of_hosts
    THEN 'Compare these hosts with the others: nvidia-peermem loaded (`lsmod`) or DMA-BUF, ACS and IOMMU, the '
      || 'versions of driver and kernel, NCCL_NET_GDR_LEVEL.'
  END AS next_step,
  t.first, t.host_copies AS citation_count
FROM told AS t
LEFT JOIN refused AS f USING (run_id)
WHERE t.host_copies > 0
