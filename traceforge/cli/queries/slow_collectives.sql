-- Collectives that took more than twice the reference of their communicator, operation and size.
SELECT c.run_id, c.iteration, c.collective_id, c.communicator_id, c.op, c.size_bytes, c.transfer_ns / 1e6 AS transfer_ms,
  l.reference_transfer_ns / 1e6 AS reference_ms, c.skew_ns / 1e6 AS skew_ms, c.last_rank
FROM timeline.collective AS c
JOIN fabric.load AS l
  ON l.run_id = c.run_id AND l.communicator_id = c.communicator_id AND l.op IS NOT DISTINCT FROM c.op
  AND l.size_bytes IS NOT DISTINCT FROM c.size_bytes
WHERE c.transfer_ns > 2 * l.reference_transfer_ns
QUALIFY ROW_NUMBER() OVER (PARTITION BY c.run_id ORDER BY c.transfer_ns - l.reference_transfer_ns DESC, c.collective_id) <= 50
ORDER BY c.transfer_ns - l.reference_transfer_ns DESC, c.collective_id
