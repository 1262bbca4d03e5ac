-- A ring crosses NUMA nodes within a host more often than it must, which is once in each direction.
-- Mode: gpu_locality
-- Severity: problem
-- Summary: On host {subject}, a ring (channel {channel}) crosses NUMA nodes {crossings} times where 2 would
--   do{of_ranks}.
-- Next step: See whether NCCL sees the true topology (in VMs and containers give it NCCL_TOPO_FILE) and the order of
--   GPUs.
WITH path AS (
  SELECT p.run_id, p.host,
    CAST('0x' || REGEXP_EXTRACT(n.from_name, '([0-9A-Fa-f]{1,12})$', 1) AS BIGINT) AS from_bus,
    CAST('0x' || REGEXP_EXTRACT(n.to_name, '([0-9A-Fa-f]{1,12})$', 1) AS BIGINT) AS to_bus
  FROM raw.nccl_path AS n
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = n.source_id AND p.process_id = r.process_id
  WHERE n.path_type = 'SYS' AND STARTS_WITH(n.from_name, 'GPU/') AND STARTS_WITH(n.to_name, 'GPU/')
),
far AS (
  SELECT DISTINCT run_id, host,
    PRINTF('%04x:%02x:%02x.%x', from_bus >> 20, (from_bus >> 12) & 255, (from_bus >> 4) & 255, from_bus & 15)
      AS from_pci,
    PRINTF('%04x:%02x:%02x.%x', to_bus >> 20, (to_bus >> 12) & 255, (to_bus >> 4) & 255, to_bus & 15) AS to_pci
  FROM path
),
member AS (
  SELECT run_id, communicator_id, rank, MIN(host) AS host, MIN(pci_address) AS pci_address,
    MIN(global_rank) AS global_rank, MIN((source_id, line)) AS first
  FROM fabric.member
  GROUP BY run_id, communicator_id, rank
),
crossed AS (
  SELECT a.run_id, a.host, g.channel, COUNT(*) AS crossings, LIST(a.global_rank) AS ranks, MIN(a.first) AS first
  FROM fabric.ring AS g
  JOIN member AS a ON a.run_id = g.run_id AND a.communicator_id = g.communicator_id AND a.rank = g.rank
  JOIN member AS b ON b.run_id = g.run_id AND b.communicator_id = g.communicator_id AND b.rank = g.next_rank
  JOIN far AS f
    ON f.run_id = a.run_id AND f.host = a.host AND f.from_pci = a.pci_address AND f.to_pci = b.pci_address
  WHERE a.host = b.host AND g.is_complete
  GROUP BY a.run_id, g.communicator_id, g.channel, a.host
)
SELECT
  run_id, 'host' AS subject_kind, host AS subject, ARG_MAX(channel, crossings) AS channel, MAX(crossings) AS crossings,
  ARG_MAX(ranks, crossings) AS ranks, MIN(first) AS first, COUNT(*) AS citation_count
FROM crossed
WHERE crossings > 2
GROUP BY run_id, host
