-- Collectives of the timeline with what NCCL's logs say of how they travel, the costliest first.
SELECT
  COALESCE(NULLIF(communicator.description, ''), NULLIF(communicator.name, ''), 'unnamed') AS group_name,
  collective.op,
  collective.size_bytes,
  COUNT(*) AS calls,
  carried.algorithm,
  carried.protocol,
  MIN(carried.channel_count) AS channel_count,
  carried.path_class,
  MIN(carried.nics) AS nics,
  MEDIAN(collective.transfer_ns) AS transfer_ns,
  MEDIAN(collective.bus_bandwidth_bytes_per_s) AS bandwidth_bytes_per_s,
  MIN(carried.score) AS score
FROM fabric.collective AS carried
JOIN timeline.collective AS collective
  ON collective.run_id = carried.run_id AND collective.collective_id = carried.collective_id
JOIN timeline.communicator AS communicator
  ON communicator.run_id = collective.run_id AND communicator.communicator_id = collective.communicator_id
WHERE carried.run_id = $run_id
GROUP BY
  group_name, collective.op, collective.size_bytes, carried.algorithm, carried.protocol, carried.path_class
ORDER BY SUM(collective.transfer_ns) DESC, group_name, collective.op, collective.size_bytes
