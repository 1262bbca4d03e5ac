-- Calls that took far longer than others of their kind: what each lost against the first quartile of its kind.
SELECT
  slow.iteration,
  COALESCE(NULLIF(communicator.description, ''), NULLIF(communicator.name, ''), 'unnamed') AS group_name,
  slow.op,
  slow.size_bytes,
  slow.transfer_ns,
  slow.reference_transfer_ns,
  slow.transfer_ns - slow.reference_transfer_ns AS lost_ns,
  slow.alike,
  slow.bus_bandwidth_bytes_per_s,
  collective.last_rank,
  (
    SELECT FIRST(message.source_rank || ' and ' || message.destination_rank ORDER BY message.message_id)
    FROM timeline.message AS message
    WHERE message.run_id = slow.run_id
      AND message.collective_id = slow.collective_id
  ) AS between_ranks
FROM timeline.slow_collective AS slow
LEFT JOIN timeline.collective AS collective
  ON collective.run_id = slow.run_id
  AND collective.collective_id = slow.collective_id
LEFT JOIN timeline.communicator AS communicator
  ON communicator.run_id = slow.run_id
  AND communicator.communicator_id = slow.communicator_id
WHERE slow.run_id = $run_id
ORDER BY lost_ns DESC, slow.collective_id
LIMIT 12
