-- Collectives of the iterations shown in detail: when each rank arrived, and when the call ended there.
SELECT
  arrival.iteration,
  arrival.collective_id,
  arrival.rank,
  arrival.arrival_ns,
  arrival.end_ns,
  COALESCE(arrival.late_ns, 0) AS late_ns,
  COALESCE(arrival.below_resolution, true) AS below_resolution,
  collective.op,
  collective.size_bytes,
  collective.dtype,
  collective.communicator_id,
  collective.first_arrival_ns,
  collective.last_arrival_ns,
  collective.last_rank,
  collective.transfer_ns,
  COALESCE(NULLIF(communicator.description, ''), NULLIF(communicator.name, ''), 'unnamed') AS group_name
FROM timeline.arrival AS arrival
JOIN timeline.collective AS collective
  ON collective.run_id = arrival.run_id
  AND collective.collective_id = arrival.collective_id
LEFT JOIN timeline.communicator AS communicator
  ON communicator.run_id = collective.run_id
  AND communicator.communicator_id = collective.communicator_id
WHERE arrival.run_id = $run_id
  AND arrival.iteration IN ($iterations)
ORDER BY arrival.iteration, collective.first_arrival_ns, arrival.collective_id, arrival.rank
