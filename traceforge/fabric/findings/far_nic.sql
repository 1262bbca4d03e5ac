-- A rank uses a NIC across the host bridge or NUMA nodes although another NIC is nearer to its GPU.
-- Mode: gpu_locality
-- Severity: problem
-- Summary: Rank {subject} uses NIC {nic}, at distance {used_type} from its GPU{numa}, although NIC {near_nic} is at
--   {near_type}.
-- Next step: Check the order of devices inside the container, NCCL_IB_HCA and the topology file: GPU and NIC should sit
--   below one PCI switch.
WITH known AS (
  -- What NCCL itself printed of a host counts more than a topology file.
  SELECT m.run_id, m.host, m.pci_address, d.nic, d.path_type, d.distance, d.gpu_numa_node, d.nic_numa_node
  FROM (SELECT DISTINCT run_id, host, pci_address FROM fabric.member) AS m
  JOIN fabric.nic_distance AS d
    ON d.run_id = m.run_id AND d.pci_address = m.pci_address AND COALESCE(d.host = m.host, TRUE)
  QUALIFY ROW_NUMBER() OVER (
    PARTITION BY m.run_id, m.host, m.pci_address, d.nic ORDER BY d.origin, d.host IS NULL, d.distance, d.source_id
  ) = 1
),
nearest AS (
  SELECT run_id, host, pci_address, MIN(distance) AS distance, ARG_MIN(path_type, distance) AS path_type,
    ARG_MIN(nic, (distance, nic)) AS nic
  FROM known
  GROUP BY run_id, host, pci_address
)
SELECT
  e.run_id, 'rank' AS subject_kind,
  COALESCE(m.global_rank, m.rank) AS subject, [COALESCE(m.global_rank, m.rank)] AS ranks,
  e.send_nic AS nic, MIN(u.path_type) AS used_type, MIN(n.nic) AS near_nic, MIN(n.path_type) AS near_type,
  CASE
    WHEN MIN(u.gpu_numa_node) <> MIN(u.nic_numa_node)
      THEN ' (NUMA node ' || MIN(u.nic_numa_node) || ', the GPU is on ' || MIN(u.gpu_numa_node) || ')'
    ELSE ''
  END AS numa,
  MIN((e.source_id, e.line)) AS first,
  COUNT(*) AS citation_count
FROM fabric.edge AS e
JOIN fabric.member AS m
  ON m.run_id = e.run_id AND m.communicator_id = e.communicator_id AND m.rank = e.source_rank
JOIN known AS u ON u.run_id = m.run_id AND u.host = m.host AND u.pci_address = m.pci_address AND u.nic = e.send_nic
JOIN nearest AS n ON n.run_id = m.run_id AND n.host = m.host AND n.pci_address = m.pci_address
WHERE e.proxy_rank IS NULL
  AND u.distance >= (SELECT value FROM meta.threshold WHERE name = 'fabric.FAR_DISTANCE')
  AND n.distance < (SELECT value FROM meta.threshold WHERE name = 'fabric.FAR_DISTANCE')
GROUP BY e.run_id, COALESCE(m.global_rank, m.rank), e.send_nic
