"""A rank uses a NIC across the host bridge or NUMA nodes although another NIC is nearer to its GPU."""

from traceforge.fabric.rule import Rule

RULE = Rule(
    mode="gpu_locality",
    severity="problem",
    summary="Rank {subject} uses NIC {nic}, {used_type} away from its GPU, although NIC {near_nic} is {near_type} "
    "away.",
    next_step="Check the order of devices inside the container, NCCL_IB_HCA and the topology file: GPU and NIC "
    "should sit "
    "below one PCI switch.",
    query="""
WITH ordered AS (
  SELECT UNNEST(['LOC', 'NVL', 'NVB', 'C2C', 'PIX', 'PXB', 'P2C', 'PXN', 'PHB', 'SYS', 'NET', 'DIS']) AS path_type,
    UNNEST(RANGE(12)) AS place
),
path AS (
  SELECT p.run_id, p.host, n.path_type, o.place,
    CAST('0x' || REGEXP_EXTRACT(n.from_name, '([0-9A-Fa-f]+)$', 1) AS BIGINT) AS bus,
    CAST(REGEXP_EXTRACT(n.to_name, '([0-9]+)$', 1) AS INTEGER) AS nic
  FROM raw.nccl_path AS n
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = n.source_id AND p.process_id = r.process_id
  JOIN ordered AS o USING (path_type)
  WHERE STARTS_WITH(n.from_name, 'GPU/') AND REGEXP_MATCHES(n.to_name, '^NET/([0-9]+-)?[0-9]+$')
    AND LENGTH(REGEXP_EXTRACT(n.from_name, '([0-9A-Fa-f]+)$', 1)) <= 12
),
gpu AS (
  SELECT run_id, host,
    PRINTF('%04x:%02x:%02x.%x', bus >> 20, (bus >> 12) & 255, (bus >> 4) & 255, bus & 15) AS pci_address,
    nic, MIN(place) AS place, MIN(path_type) AS path_type
  FROM path
  GROUP BY run_id, host, bus, nic
),
nearest AS (
  SELECT run_id, host, pci_address, MIN(place) AS place, ARG_MIN(path_type, place) AS path_type, ARG_MIN(nic,
    place) AS nic
  FROM gpu
  GROUP BY run_id, host, pci_address
)
SELECT
  e.run_id, 'rank' AS subject_kind, COALESCE(m.global_rank, m.rank) AS subject, [COALESCE(m.global_rank,
    m.rank)] AS ranks,
  e.send_nic AS nic, MIN(u.path_type) AS used_type, MIN(n.nic) AS near_nic, MIN(n.path_type) AS near_type,
  ARG_MIN(e.source_id, (e.source_id, e.line)) AS source_id,
  ARG_MIN(e.line, (e.source_id, e.line)) AS line,
  COUNT(*) AS citation_count
FROM fabric.edge AS e
JOIN fabric.member AS m
  ON m.run_id = e.run_id AND m.communicator_id = e.communicator_id AND m.rank = e.source_rank
JOIN gpu AS u ON u.run_id = m.run_id AND u.host = m.host AND u.pci_address = m.pci_address AND u.nic = e.send_nic
JOIN nearest AS n ON n.run_id = m.run_id AND n.host = m.host AND n.pci_address = m.pci_address
WHERE e.proxy_rank IS NULL AND u.place >= 8 AND n.place < 8
GROUP BY e.run_id, COALESCE(m.global_rank, m.rank), e.send_nic
""",
)
