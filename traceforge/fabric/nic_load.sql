-- What each NIC carries by NCCL's plan: one row per (host, network, NIC). A static model, not a measurement: bytes of
-- the logged calls times the share that a link of a ring carries, split evenly over channels.
-- Scope: run
CREATE OR REPLACE TABLE fabric.nic_load (
  -- Joins meta.run.run_id.
  run_id,
  -- Host name.
  host,
  -- Network as named by connections; by fabric.nic for NICs without connections.
  network,
  -- Number of the NIC.
  nic,
  -- Device name, such as mlx5_0; NULL where not printed.
  name,
  -- Ranks in the job (in the communicator, where that is unknown) that send or receive through it, ascending.
  ranks,
  -- Connections of rings and trees that use it.
  edge_count,
  -- How many of them use GPU Direct RDMA.
  gdr_edge_count,
  -- Share of the connections of all NICs of the host; 0 for a NIC that carries none.
  edge_share,
  -- Bytes sent according to the ring model; NULL where no calls are logged.
  send_bytes
) AS
WITH moved AS (
  -- The member with the most calls represents the communicator.
  SELECT run_id, communicator_id, rank, SUM(
    CASE op
      WHEN 'all_reduce' THEN 2.0 * size_bytes * (k.rank_count - 1) / k.rank_count
      WHEN 'all_gather' THEN 1.0 * size_bytes * (k.rank_count - 1)
      WHEN 'reduce_scatter' THEN 1.0 * size_bytes * (k.rank_count - 1)
      WHEN 'broadcast' THEN size_bytes
      WHEN 'reduce' THEN size_bytes
    END) AS link_bytes
  FROM fabric.operation AS o
  JOIN fabric.communicator AS k USING (run_id, communicator_id)
  GROUP BY run_id, communicator_id, rank
),
carried AS (
  SELECT run_id, communicator_id, MAX(link_bytes) AS link_bytes FROM moved GROUP BY run_id, communicator_id
),
channels AS (
  SELECT run_id, communicator_id, COUNT(DISTINCT channel) AS channel_count
  FROM fabric.edge
  WHERE connection_index = 0
  GROUP BY run_id, communicator_id
),
ends AS (
  SELECT *, source_host AS host, send_nic AS nic, source_rank AS rank, true AS sends FROM fabric.edge
  WHERE connection_index = 0 AND send_nic IS NOT NULL AND source_host IS NOT NULL
  UNION ALL
  SELECT *, target_host, receive_nic, target_rank, false FROM fabric.edge
  WHERE connection_index = 0 AND receive_nic IS NOT NULL AND target_host IS NOT NULL
),
used AS (
  SELECT
    e.run_id, e.host, e.network, e.nic,
    LIST_SORT(LIST(DISTINCT COALESCE(m.global_rank, e.rank))) AS ranks,
    COUNT(*) AS edge_count,
    COUNT(*) FILTER (WHERE e.is_gdr) AS gdr_edge_count,
    CAST(SUM(c.link_bytes / h.channel_count) FILTER (WHERE e.sends AND g.rank IS NOT NULL) AS BIGINT) AS send_bytes
  FROM ends AS e
  LEFT JOIN fabric.member AS m
    ON m.run_id = e.run_id AND m.communicator_id = e.communicator_id AND m.rank = e.rank
  LEFT JOIN carried AS c ON c.run_id = e.run_id AND c.communicator_id = e.communicator_id
  LEFT JOIN channels AS h ON h.run_id = e.run_id AND h.communicator_id = e.communicator_id
  LEFT JOIN fabric.ring AS g
    ON g.run_id = e.run_id AND g.communicator_id = e.communicator_id AND g.channel = e.channel
    AND g.rank = e.source_rank AND g.next_rank = e.target_rank
  GROUP BY e.run_id, e.host, e.network, e.nic
),
known AS (
  SELECT n.run_id, n.host, n.network, n.nic, n.name, u.network AS used_network
  FROM fabric.nic AS n
  LEFT JOIN (SELECT DISTINCT run_id, host, network FROM used) AS u
    ON u.run_id = n.run_id AND u.host = n.host AND fabric.is_same_network(u.network, n.network)
),
every_nic AS (
  SELECT run_id, host, COALESCE(used_network, network) AS network, nic, MIN(name) AS name
  FROM known
  GROUP BY run_id, host, COALESCE(used_network, network), nic
)
SELECT
  COALESCE(u.run_id, k.run_id), COALESCE(u.host, k.host), COALESCE(u.network, k.network), COALESCE(u.nic, k.nic),
  k.name,
  COALESCE(u.ranks, []),
  COALESCE(u.edge_count, 0),
  COALESCE(u.gdr_edge_count, 0),
  COALESCE(u.edge_count / SUM(u.edge_count) OVER (PARTITION BY COALESCE(u.run_id, k.run_id), COALESCE(u.host,
    k.host)), 0),
  u.send_bytes
FROM used AS u
FULL JOIN every_nic AS k ON k.run_id = u.run_id AND k.host = u.host AND k.network = u.network AND k.nic = u.nic
ORDER BY 1, 2, 3, 4
