-- A NIC runs below the speed of the others of its kind: links that came up with fewer lanes or at a lower rate.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: On {on_hosts}, {slow:count NIC} of {speed:.0f} Gbit/s in use, where others of the
--   job run at {usual:.0f}{of_ranks}.
-- Next step: Look at the link's rate and width (`ibstat`, `mlxlink`), the cable or transceiver, and the switch port.
WITH stated AS (
  -- Only NICs with connections: the speed of a management NIC does not matter.
  SELECT n.*, l.ranks
  FROM fabric.nic AS n
  JOIN fabric.nic_load AS l
    ON l.run_id = n.run_id AND l.host = n.host AND l.nic = n.nic AND fabric.is_same_network(l.network, n.network)
  WHERE n.speed_bytes_per_s > 0 AND l.edge_count > 0
),
compared AS (
  SELECT *, LIST_SORT(LIST(speed_bytes_per_s) OVER alike)[CAST(CEIL(COUNT(*) OVER alike *
    (SELECT value FROM meta.threshold WHERE name = 'fabric.USUAL_SPEED_QUANTILE')) AS BIGINT)] AS usual
  FROM stated
  WINDOW alike AS (PARTITION BY run_id, network, link)
),
slowed AS (
  SELECT c.run_id, c.host, COUNT(*) AS slow, MIN(c.speed_bytes_per_s) AS speed, MIN(c.usual) AS usual,
    LIST_SORT(LIST_DISTINCT(FLATTEN(LIST(c.ranks)))) AS ranks, MIN((c.source_id, c.line)) AS first
  FROM compared AS c
  WHERE c.speed_bytes_per_s < (SELECT value FROM meta.threshold WHERE name = 'fabric.SLOW_NIC_SHARE') * c.usual
  GROUP BY c.run_id, c.host
)
SELECT
  run_id, 'host' AS subject_kind, MIN(host) AS subject, COUNT(*) AS hosts, CAST(SUM(slow) AS BIGINT) AS slow,
  MIN(speed) * 8 / 1e9 AS speed, MIN(usual) * 8 / 1e9 AS usual, FLATTEN(LIST(ranks)) AS ranks,
  ARG_MIN(first, host) AS first, SUM(slow) AS citation_count
FROM slowed
GROUP BY run_id
