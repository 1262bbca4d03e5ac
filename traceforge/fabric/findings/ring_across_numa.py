"""Ring neighbours on one node talk across NUMA nodes more often than a ring must: once in each direction."""

from traceforge.fabric.rule import Rule

RULE = Rule(
    mode="gpu_locality",
    severity="problem",
    summary="On host {subject}, a ring (channel {channel}) crosses NUMA nodes {crossings} times where 2 would "
    "do{of_ranks}.",
    next_step="See whether NCCL sees the true topology (in VMs and containers give it NCCL_TOPO_FILE) and the order "
    "of GPUs.",
    query="""
WITH path AS (
  SELECT p.run_id, p.host, n.path_type,
    CAST('0x' || REGEXP_EXTRACT(n.from_name, '([0-9A-Fa-f]{1,12})$', 1) AS BIGINT) AS from_bus,
    CAST('0x' || REGEXP_EXTRACT(n.to_name, '([0-9A-Fa-f]{1,12})$', 1) AS BIGINT) AS to_bus
  FROM raw.nccl_path AS n
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = n.source_id AND p.process_id = r.process_id
  WHERE n.path_type = 'SYS' AND STARTS_WITH(n.from_name, 'GPU/') AND STARTS_WITH(n.to_name, 'GPU/')
),
far AS (
  SELECT DISTINCT run_id, host,
    PRINTF('%04x:%02x:%02x.%x', from_bus >> 20, (from_bus >> 12) & 255, (from_bus >> 4) & 255,
      from_bus & 15) AS from_pci,
    PRINTF('%04x:%02x:%02x.%x', to_bus >> 20, (to_bus >> 12) & 255, (to_bus >> 4) & 255, to_bus & 15) AS to_pci
  FROM path
),
seat AS (
  SELECT run_id, communicator_id, rank, MIN(host) AS host, MIN(pci_address) AS pci_address,
    MIN(global_rank) AS global_rank,
    MIN(source_id) AS source_id, MIN(line) AS line
  FROM fabric.member
  GROUP BY run_id, communicator_id, rank
),
crossed AS (
  SELECT g.run_id, g.communicator_id, g.channel, a.host, COUNT(*) AS crossings, LIST(a.global_rank) AS ranks,
    MIN(a.source_id) AS source_id, MIN(a.line) AS line
  FROM fabric.ring AS g
  JOIN seat AS a ON a.run_id = g.run_id AND a.communicator_id = g.communicator_id AND a.rank = g.rank
  JOIN seat AS b ON b.run_id = g.run_id AND b.communicator_id = g.communicator_id AND b.rank = g.next_rank
  JOIN far AS f
    ON f.run_id = a.run_id AND f.host = a.host AND f.from_pci = a.pci_address AND f.to_pci = b.pci_address
  WHERE a.host = b.host AND g.is_complete
  GROUP BY g.run_id, g.communicator_id, g.channel, a.host
)
SELECT
  run_id, 'host' AS subject_kind, host AS subject, ARG_MAX(channel, crossings) AS channel, MAX(crossings) AS crossings,
  ARG_MAX(ranks, crossings) AS ranks, MIN(source_id) AS source_id, MIN(line) AS line, COUNT(*) AS citation_count
FROM crossed
WHERE crossings > 2
GROUP BY run_id, host
""",
)
