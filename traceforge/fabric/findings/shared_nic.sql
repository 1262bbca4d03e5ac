-- Several ranks of a node share a NIC while another of its kind is idle.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: On {on_hosts}, {used} of {nics} NICs carry all connections of the host's ranks:
--   {busiest} carries {share:share}, {idle} none{of_ranks}.
-- Next step: See why ranks do not use the NIC next to their GPU: NCCL_IB_HCA, the topology NCCL sees inside the
--   container or VM (NCCL_TOPO_FILE), links that are down, and too few channels to reach all NICs.
WITH alike AS (
  -- NICs of one kind on a host: a management NIC of another link layer or driver is no substitute.
  SELECT l.*, n.link, REGEXP_REPLACE(COALESCE(l.name, ''), '[0-9_]+$', '') AS family,
    CASE WHEN n.source_id IS NOT NULL THEN (n.source_id, n.line) END AS first
  FROM fabric.nic_load AS l
  LEFT JOIN fabric.nic AS n
    ON n.run_id = l.run_id AND n.host = l.host AND n.nic = l.nic AND fabric.is_same_network(l.network, n.network)
),
by_host AS (
  SELECT
    run_id, host,
    COUNT(*) AS nics,
    COUNT(*) FILTER (WHERE edge_count > 0) AS used,
    MAX(edge_share) AS share,
    ARG_MAX(COALESCE(name, CAST(nic AS VARCHAR)), edge_share) AS busiest,
    LIST(COALESCE(name, CAST(nic AS VARCHAR)) ORDER BY nic) FILTER (WHERE edge_count = 0) AS idle,
    LIST_SORT(LIST_DISTINCT(FLATTEN(LIST(ranks)))) AS ranks,
    MAX(LEN(ranks)) AS most_ranks,
    SUM(edge_count) AS edge_count,
    MIN(first) AS first
  FROM alike
  GROUP BY run_id, host, network, link, family
)
SELECT
  run_id, 'host' AS subject_kind, MIN(host) AS subject, COUNT(*) AS hosts,
  ARG_MIN(used, host) AS used, ARG_MIN(nics, host) AS nics, ARG_MIN(share, host) AS share,
  ARG_MIN(busiest, host) AS busiest, ARG_MIN(idle, host) AS idle, FLATTEN(LIST(ranks)) AS ranks,
  ARG_MIN(first, host) AS first, SUM(edge_count) AS citation_count
FROM by_host
WHERE nics > used AND used > 0 AND most_ranks >= 2 AND LEN(ranks) > used AND first IS NOT NULL
GROUP BY run_id
