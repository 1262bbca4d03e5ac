-- Ends of connections between nodes: one row per end that a log states. Each end copies, or not, for itself.
-- Scope: run
CREATE OR REPLACE TABLE fabric.network_end (
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
  -- send or receive.
  direction,
  -- Rank in the job at this end; NULL when unknown.
  global_rank,
  -- Host of this end.
  host,
  -- Network, such as IB, Socket, AWS Libfabric.
  network,
  -- NIC at this end.
  nic,
  -- Whether this end uses GPU Direct RDMA.
  is_gdr,
  -- Joins meta.source.source_id: the log that states it.
  source_id,
  -- Line there, from 1.
  line
) AS
SELECT
  m.run_id, m.communicator_id, l.channel, COALESCE(l.connection_index, 0), l.source_rank, l.target_rank, l.direction,
  m.global_rank, m.host, l.network, l.nic, l.is_gdr, l.source_id, r.line
FROM raw.nccl_link AS l
JOIN fabric.link AS w ON w.source_id = l.source_id AND w.record_id = l.record_id
JOIN fabric.member AS m ON m.source_id = w.source_id AND m.handle_id = w.handle_id
JOIN raw.nccl_record AS r ON r.source_id = l.source_id AND r.record_id = l.record_id
WHERE l.transport = 'NET' AND l.source_rank IS NOT NULL AND l.target_rank IS NOT NULL
ORDER BY m.run_id, m.communicator_id, l.channel, l.source_rank, l.target_rank, l.direction, l.source_id, r.line
