-- Which rank uses which NIC: one row a (rank, NIC), over the rings and trees of all communicators.
WITH sent AS (
  SELECT
    edge.communicator_id, edge.source_rank AS rank, edge.send_nic AS nic, edge.network, edge.is_gdr, edge.proxy_rank
  FROM fabric.edge AS edge
  WHERE edge.run_id = $run_id AND edge.transport = 'NET' AND edge.send_nic IS NOT NULL
  UNION ALL
  SELECT
    edge.communicator_id, edge.target_rank AS rank, edge.receive_nic AS nic, edge.network, edge.is_gdr, edge.proxy_rank
  FROM fabric.edge AS edge
  WHERE edge.run_id = $run_id AND edge.transport = 'NET' AND edge.receive_nic IS NOT NULL
),
named AS (
  SELECT run_id, host, network, nic, MIN(name) AS name FROM fabric.nic_load WHERE run_id = $run_id
  GROUP BY run_id, host, network, nic
),
distance AS (
  -- What a host's own log printed counts more than a topology file, which may be that of any host.
  SELECT seat.host, seat.pci_address, told.nic,
    ARG_MIN(told.path_type, (told.origin, told.host IS NULL, told.distance)) AS path_type
  FROM (SELECT DISTINCT host, pci_address FROM fabric.member WHERE run_id = $run_id) AS seat
  JOIN fabric.nic_distance AS told
    ON told.run_id = $run_id AND told.pci_address = seat.pci_address AND COALESCE(told.host = seat.host, TRUE)
  GROUP BY seat.host, seat.pci_address, told.nic
)
SELECT
  COALESCE(member.global_rank, member.rank) AS rank,
  MIN(member.host) AS host,
  MIN(member.device) AS device,
  MIN(member.pci_address) AS pci_address,
  sent.network,
  sent.nic,
  MIN(named.name) AS name,
  COUNT(*) AS connections,
  BOOL_AND(sent.is_gdr) AS is_gdr,
  BOOL_OR(sent.proxy_rank IS NOT NULL) AS is_relayed,
  MIN(distance.path_type) AS path_type
FROM sent
JOIN fabric.member AS member
  ON member.run_id = $run_id AND member.communicator_id = sent.communicator_id AND member.rank = sent.rank
LEFT JOIN named
  ON named.host = member.host AND named.network = sent.network AND named.nic = sent.nic
LEFT JOIN distance
  ON distance.host = member.host AND distance.pci_address = member.pci_address AND distance.nic = sent.nic
GROUP BY COALESCE(member.global_rank, member.rank), sent.network, sent.nic
ORDER BY rank, sent.network, sent.nic
