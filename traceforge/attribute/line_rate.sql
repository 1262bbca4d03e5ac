-- What bus bandwidth the hardware lets each communicator reach: one row a communicator and operation of which that is known.
--
-- Inside a host it is what a device's links can send, for groups of so many devices that they use all links. Across hosts it is what the host's NICs leave to the members: a
-- ring crosses from each host once, so that members on one host use their shares of its NICs together; in an all-to-all
-- each member sends to every other one, of which only those on other hosts cost NICs. What the user states goes before
-- documents and logs. Not handled: oversubscribed switches, reductions inside of the network.
-- Scope: run
CREATE OR REPLACE TABLE attribute.line_rate (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins timeline.communicator.communicator_id.
  communicator_id,
  -- Operation, such as all_reduce.
  op,
  -- Whether members lie on several hosts.
  crosses_hosts,
  -- Bus bandwidth that can be reached, by NCCL's definition, bytes/s.
  bus_bandwidth_bytes_per_s,
  -- What the number rests on.
  basis
) AS
WITH stated AS (
  SELECT MAX(rate_per_s) FILTER (name = 'link') AS link, MAX(rate_per_s) FILTER (name = 'nic') AS nic
  FROM meta.stated_rate
),
-- A rank's share of the NICs of its host, by logs; of a host of which each rank is known.
host AS (
  SELECT r.run_id, r.host, COUNT(*) AS ranks
  FROM align.rank AS r
  JOIN meta.run AS m USING (run_id)
  WHERE r.host IS NOT NULL
  GROUP BY r.run_id, r.host, m.world_size
  QUALIFY SUM(COUNT(*)) OVER (PARTITION BY r.run_id) >= COALESCE(m.world_size, 0)
),
nic AS (
  SELECT run_id, host, MAX(speed) AS speed, ARG_MAX(nics, speed) AS nics
  FROM (
    SELECT run_id, host, network, SUM(speed_bytes_per_s) AS speed, COUNT(*) AS nics
    FROM fabric.nic
    GROUP BY ALL
    HAVING BOOL_AND(speed_bytes_per_s IS NOT NULL)
  )
  GROUP BY run_id, host
),
member AS (
  SELECT k.run_id, k.communicator_id, k.size, r.rank, r.host, d.link_bytes_per_s, d.link_devices, d.device,
    n.speed / h.ranks AS nic_bytes_per_s, n.nics, n.speed
  FROM (SELECT run_id, communicator_id, size, UNNEST(ranks) AS rank FROM align.communicator WHERE size > 1) AS k
  JOIN align.rank AS r USING (run_id, rank)
  LEFT JOIN operation.device AS d USING (run_id, rank)
  LEFT JOIN host AS h ON h.run_id = r.run_id AND h.host = r.host
  LEFT JOIN nic AS n ON n.run_id = r.run_id AND n.host = r.host
  WHERE r.host IS NOT NULL
),
placed AS (
  SELECT run_id, communicator_id, host, ANY_VALUE(size) AS size, COUNT(*) AS members,
    MIN(link_bytes_per_s) AS link, MIN(device) AS device,
    COUNT(*) FILTER (link_bytes_per_s IS NOT NULL AND size >= link_devices) AS linked,
    ANY_VALUE(nic_bytes_per_s) AS nic, ANY_VALUE(nics) AS nics, ANY_VALUE(speed) AS speed
  FROM member
  GROUP BY ALL
),
spread AS (
  SELECT run_id, communicator_id, ANY_VALUE(size) AS size, COUNT(*) AS hosts, MIN(members) AS members,
    MIN(link) FILTER (linked = members) AS link, MIN(device) AS device,
    CASE WHEN COUNT(nic) = COUNT(*) THEN MIN(nic) END AS nic, ARG_MIN(nics, nic) AS nics, ARG_MIN(speed, nic) AS speed,
    -- Of hosts whose NICs differ, the slowest sets the pace of all.
    CASE WHEN MAX(speed) > MIN(speed) THEN ARG_MIN(host, nic) END AS slow_host, MAX(speed) AS most_speed
  FROM placed
  GROUP BY ALL
  HAVING SUM(members) = ANY_VALUE(size)
),
reached AS (
  SELECT DISTINCT s.run_id, s.communicator_id, c.op, s.hosts > 1 AS crosses_hosts,
    CASE
      WHEN s.hosts = 1 THEN COALESCE(t.link, s.link)
      WHEN c.op IN ('all_to_all', 'all_to_allv')
        THEN COALESCE(t.nic, s.nic) * (s.size - 1) / (s.size - s.members)
      WHEN c.op = 'send_recv' THEN COALESCE(t.nic, s.nic)
      ELSE COALESCE(t.nic, s.nic) * s.members
    END AS rate,
    CASE
      WHEN s.hosts = 1 THEN IF(t.link IS NOT NULL, 'as stated with --line-rate link', 'links of ' || s.device)
      WHEN t.nic IS NOT NULL THEN 'as stated with --line-rate nic'
      WHEN s.slow_host IS NOT NULL
        THEN FORMAT('NICs of host {} with {:.4g} GB/s for all its ranks, where others have {:.4g}, by the logs',
          s.slow_host[:60], s.speed / 1e9, s.most_speed / 1e9)
      WHEN s.nics = 1 THEN FORMAT('1 NIC a host with {:.4g} GB/s, by the logs', s.speed / 1e9)
      ELSE FORMAT('{} NICs a host with {:.4g} GB/s for all its ranks, by the logs', s.nics, s.speed / 1e9)
    END AS basis
  FROM spread AS s
  CROSS JOIN stated AS t
  JOIN timeline.collective AS c USING (run_id, communicator_id)
  WHERE c.op IS NOT NULL
)
SELECT run_id, communicator_id, op, crosses_hosts, rate AS bus_bandwidth_bytes_per_s, basis
FROM reached
WHERE rate IS NOT NULL
ORDER BY run_id, communicator_id, op
