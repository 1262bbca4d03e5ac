-- Distance of each NIC from each GPU of a host: one row per (host, GPU, NIC), from NCCL's topology dump (GRAPH lines
-- of a log) or a topology file in XML. A file without a host applies to all hosts on which its addresses occur.
-- Scope: run
CREATE OR REPLACE TABLE fabric.nic_distance (
  -- Joins meta.run.run_id.
  run_id,
  -- Host name; NULL where a topology file does not state it.
  host,
  -- PCI address of the GPU.
  pci_address,
  -- Number of the NIC, as in fabric.nic.
  nic,
  -- Class of the path, nearest first: PIX (one PCI switch), PXB (several), PXN (another GPU's NIC), PHB (the CPU's
  -- bridge), SYS (between NUMA nodes), ...
  path_type,
  -- Index of the class among all, from 0; from 8 on data pass the CPU.
  distance,
  -- NUMA node of the GPU; NULL where the origin is a log.
  gpu_numa_node,
  -- NUMA node of the NIC; NULL where the origin is a log.
  nic_numa_node,
  -- log, or xml.
  origin,
  -- Joins meta.source.source_id.
  source_id
) AS
WITH RECURSIVE ordered AS (
  SELECT UNNEST(['LOC', 'NVL', 'NVB', 'C2C', 'PIX', 'PXB', 'P2C', 'PXN', 'PHB', 'SYS', 'NET', 'DIS']) AS path_type,
    UNNEST(RANGE(12)) AS distance
),
printed AS (
  SELECT p.run_id, p.host, p.source_id, o.path_type, o.distance,
    CAST('0x' || REGEXP_EXTRACT(n.from_name, '([0-9A-Fa-f]+)$', 1) AS BIGINT) AS bus,
    -- Numbers of NICs are hexadecimal here, and nowhere else.
    CAST('0x' || REGEXP_EXTRACT(n.to_name, '([0-9A-Fa-f]+)$', 1) AS INTEGER) AS nic
  FROM raw.nccl_path AS n
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = n.source_id AND p.process_id = r.process_id
  JOIN ordered AS o USING (path_type)
  WHERE STARTS_WITH(n.from_name, 'GPU/') AND REGEXP_MATCHES(n.to_name, '^NET/([0-9A-Fa-f]+-)?[0-9A-Fa-f]{1,7}$')
    AND LENGTH(REGEXP_EXTRACT(n.from_name, '([0-9A-Fa-f]+)$', 1)) <= 12
),
node AS (
  SELECT n.*, s.run_id, s.host
  FROM raw.nccl_topology_node AS n
  JOIN raw.nccl_topology AS t USING (source_id, topology_id)
  JOIN meta.source AS s USING (source_id)
  WHERE t.origin = 'xml'
),
above AS (
  SELECT source_id, topology_id, node_id AS leaf, node_id, parent_node_id, kind, 0 AS steps
  FROM node
  WHERE kind = 'gpu' OR (kind = 'net' AND device IS NOT NULL)
  UNION ALL
  SELECT a.source_id, a.topology_id, a.leaf, n.node_id, n.parent_node_id, n.kind, a.steps + 1
  FROM above AS a
  JOIN node AS n
    ON n.source_id = a.source_id AND n.topology_id = a.topology_id AND n.node_id = a.parent_node_id
),
pair AS (
  SELECT g.run_id, g.host, g.source_id, LOWER(g.pci_address) AS pci_address, n.device AS nic,
    g.numa_node AS gpu_numa_node, n.numa_node AS nic_numa_node, g.topology_id, g.node_id AS gpu, n.node_id AS net
  FROM node AS g
  JOIN node AS n ON n.source_id = g.source_id AND n.topology_id = g.topology_id
  WHERE g.kind = 'gpu' AND n.kind = 'net' AND n.device IS NOT NULL AND g.pci_address IS NOT NULL
),
met AS (
  -- Where the paths up from GPU and NIC first meet: below a PCI switch, at a CPU, or nowhere.
  SELECT p.*, a.kind, a.steps AS gpu_steps, b.steps AS nic_steps
  FROM pair AS p
  LEFT JOIN above AS a ON a.source_id = p.source_id AND a.topology_id = p.topology_id AND a.leaf = p.gpu
  LEFT JOIN above AS b
    ON b.source_id = p.source_id AND b.topology_id = p.topology_id AND b.leaf = p.net AND b.node_id = a.node_id
  QUALIFY ROW_NUMBER() OVER (
    PARTITION BY p.source_id, p.topology_id, p.gpu, p.net ORDER BY b.steps IS NULL, a.steps + b.steps
  ) = 1
),
drawn AS (
  -- From a GPU to its switch there are two steps (its own slot, the switch), from a NIC at most three.
  SELECT *,
    CASE
      WHEN nic_steps IS NULL OR kind NOT IN ('pci', 'cpu') THEN 'SYS'
      WHEN kind = 'cpu' THEN 'PHB'
      WHEN gpu_steps <= 2 AND nic_steps <= 3 THEN 'PIX'
      ELSE 'PXB'
    END AS path_type
  FROM met
)
SELECT run_id, host,
  PRINTF('%04x:%02x:%02x.%x', bus >> 20, (bus >> 12) & 255, (bus >> 4) & 255, bus & 15),
  nic, ARG_MIN(path_type, distance), MIN(distance), NULL::INTEGER, NULL::INTEGER, 'log', MIN(source_id)
FROM printed
GROUP BY run_id, host, bus, nic
UNION ALL
SELECT d.run_id, d.host, d.pci_address, d.nic, ARG_MIN(d.path_type, o.distance), MIN(o.distance), MIN(d.gpu_numa_node),
  MIN(d.nic_numa_node), 'xml', MIN(d.source_id)
FROM drawn AS d
JOIN ordered AS o USING (path_type)
GROUP BY d.run_id, d.host, d.pci_address, d.nic
