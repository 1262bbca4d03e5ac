-- Host of each process that debug logs hold: one row per (log, process). Containers are often all called alike, such as
-- localhost: two ranks of one communicator on one GPU are of two hosts, which their addresses or NCCL's numbers of ranks
-- on each node tell apart. Where neither does, they stay one host, as do ranks that reach each other at 127.0.0.1: their
-- machine is one, whatever NCCL is told of its hosts.
-- Scope: run
CREATE OR REPLACE TABLE fabric.process_host (
  -- Joins meta.source.source_id.
  source_id,
  -- Joins raw.nccl_process.process_id within the source.
  process_id,
  -- Host name as printed; with the address, or the first rank of the node, where hosts of one name are told apart.
  host
) AS
WITH process AS (
  SELECT s.run_id, p.source_id, p.process_id, p.host
  FROM raw.nccl_process AS p
  JOIN meta.source AS s USING (source_id)
),
address AS (
  SELECT r.source_id, r.process_id, MIN(n.address) AS address
  FROM raw.nccl_nic AS n
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  WHERE n.network = 'Bootstrap' AND n.address IS NOT NULL
  GROUP BY r.source_id, r.process_id
),
seat AS (
  -- Members of communicators that NCCL numbers, on GPUs.
  SELECT
    p.run_id, p.host, p.source_id, p.process_id, c.comm_hash, c.rank_count, c.rank, c.pci_address, c.node_count,
    a.address, c.rank - c.local_rank AS first_rank
  FROM raw.nccl_communicator AS c
  JOIN process AS p USING (source_id, process_id)
  LEFT JOIN address AS a USING (source_id, process_id)
  WHERE c.comm_hash IS NOT NULL AND c.rank IS NOT NULL AND c.pci_address IS NOT NULL
),
gpu AS (
  SELECT
    run_id, host, comm_hash, rank_count, pci_address,
    COUNT(DISTINCT rank) AS ranks,
    COUNT(DISTINCT address) AS addresses,
    COUNT(DISTINCT first_rank) AS first_ranks,
    COALESCE(BOOL_OR(address LIKE '127.%' OR address IN ('::1', '[::1]')), FALSE) AS are_within_host,
    MAX(node_count) AS nodes
  FROM seat
  GROUP BY ALL
),
shared AS (
  -- Hosts of one name: where every GPU has as many addresses, or nodes, as ranks, these tell the hosts apart.
  SELECT
    run_id, host,
    BOOL_AND(addresses = ranks) AS are_told_by_address,
    BOOL_AND(first_ranks = ranks AND nodes >= ranks AND NOT are_within_host) AS are_told_by_node
  FROM gpu
  WHERE ranks > 1
  GROUP BY run_id, host
),
node AS (
  -- The largest communicator of a process says on which node it is.
  SELECT source_id, process_id, ARG_MAX(first_rank, rank_count) AS first_rank
  FROM seat
  GROUP BY source_id, process_id
)
SELECT
  p.source_id, p.process_id,
  CASE
    WHEN s.are_told_by_address AND a.address IS NOT NULL THEN p.host || ' (' || a.address || ')'
    WHEN s.are_told_by_node AND n.first_rank IS NOT NULL THEN p.host || ' (of rank ' || n.first_rank || ')'
    ELSE p.host
  END
FROM process AS p
LEFT JOIN address AS a USING (source_id, process_id)
LEFT JOIN node AS n USING (source_id, process_id)
LEFT JOIN shared AS s ON s.run_id = p.run_id AND s.host = p.host
ORDER BY p.source_id, p.process_id
