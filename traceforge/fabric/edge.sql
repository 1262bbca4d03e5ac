-- Connections between ranks: one row per (communicator, channel, from, to), merged from the log lines of both ends.
-- Scope: run
CREATE OR REPLACE TABLE fabric.edge (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins fabric.communicator.communicator_id within the run.
  communicator_id,
  -- Channel number.
  channel,
  -- 0 for rings and trees (and where not printed), 1 for send and receive.
  connection_index,
  -- Rank in the communicator the data comes from.
  source_rank,
  -- Rank in the communicator the data goes to.
  target_rank,
  -- P2P, SHM, NET or COLLNET.
  transport,
  -- p2p (NVLink or PCIe between GPUs), shared_memory, network_gdr, network_host (through host memory at an end), socket
  -- (at an end), collnet.
  path_class,
  -- As printed: IPC, CUMEM, direct/direct, ...; NULL for NET.
  mode,
  -- Network, such as IB, Socket, AWS Libfabric; NULL within a node.
  network,
  -- NIC that sends; NULL within a node, and where the sender's log is missing.
  send_nic,
  -- NIC that receives; NULL within a node, and where the receiver's log is missing.
  receive_nic,
  -- Whether both ends that are logged use GPU Direct RDMA; NULL within a node.
  is_gdr,
  -- Rank whose proxy drives the sender's NIC (PXN); NULL where the sender drives it.
  proxy_rank,
  -- Host of the sender; NULL where its log is missing.
  source_host,
  -- Host of the receiver; NULL where its log is missing.
  target_host,
  -- Joins meta.source.source_id: the log that states it.
  source_id,
  -- record_id of the first line that states it, within the source.
  record_id,
  -- Line there, from 1.
  line
) AS
WITH stated AS (
  SELECT m.run_id, m.communicator_id, COALESCE(l.connection_index, 0) AS connection_index, r.line, l.*
    EXCLUDE (connection_index)
  FROM raw.nccl_link AS l
  JOIN fabric.link AS w ON w.source_id = l.source_id AND w.record_id = l.record_id
  JOIN fabric.member AS m ON m.source_id = w.source_id AND m.handle_id = w.handle_id
  JOIN raw.nccl_record AS r ON r.source_id = l.source_id AND r.record_id = l.record_id
  WHERE l.source_rank IS NOT NULL AND l.target_rank IS NOT NULL
),
gathered AS (
  SELECT
    run_id, communicator_id, channel, connection_index, source_rank, target_rank,
    ARG_MIN(transport, (source_id, record_id)) AS transport,
    ARG_MIN(mode, (source_id, record_id)) AS mode,
    ARG_MIN(network, (source_id, record_id)) AS network,
    MIN(nic) FILTER (WHERE direction IS DISTINCT FROM 'receive') AS send_nic,
    MIN(nic) FILTER (WHERE direction = 'receive') AS receive_nic,
    BOOL_AND(is_gdr) AS is_gdr,
    BOOL_OR(network = 'Socket') AS is_socket,
    MIN(proxy_rank) FILTER (WHERE direction IS DISTINCT FROM 'receive') AS proxy_rank,
    ARG_MIN(source_id, (source_id, record_id)) AS source_id,
    ARG_MIN(record_id, (source_id, record_id)) AS record_id,
    ARG_MIN(line, (source_id, record_id)) AS line
  FROM stated
  GROUP BY run_id, communicator_id, channel, connection_index, source_rank, target_rank
),
seat AS (
  SELECT run_id, communicator_id, rank, MIN(host) AS host FROM fabric.member GROUP BY run_id, communicator_id, rank
)
SELECT
  g.run_id, g.communicator_id, g.channel, g.connection_index, g.source_rank, g.target_rank, g.transport,
  CASE
    WHEN g.transport = 'SHM' THEN 'shared_memory'
    WHEN g.transport = 'COLLNET' THEN 'collnet'
    WHEN g.transport <> 'NET' THEN 'p2p'
    WHEN g.is_socket THEN 'socket'
    WHEN g.is_gdr THEN 'network_gdr'
    ELSE 'network_host'
  END,
  g.mode, g.network, g.send_nic, g.receive_nic, g.is_gdr, g.proxy_rank, a.host, b.host, g.source_id, g.record_id, g.line
FROM gathered AS g
LEFT JOIN seat AS a
  ON a.run_id = g.run_id AND a.communicator_id = g.communicator_id AND a.rank = g.source_rank
LEFT JOIN seat AS b
  ON b.run_id = g.run_id AND b.communicator_id = g.communicator_id AND b.rank = g.target_rank
ORDER BY g.run_id, g.communicator_id, g.channel, g.connection_index, g.source_rank, g.target_rank
