-- Rings of the largest communicator: each rank's place, and the path to the next one.
WITH shown AS (
  SELECT MIN(communicator_id) AS communicator_id
  FROM fabric.ring
  WHERE run_id = $run_id
)
SELECT
  ring.communicator_id,
  ring.channel,
  ring.position,
  ring.rank,
  member.global_rank,
  member.host,
  ring.is_complete,
  ring.origin,
  edge.path_class,
  edge.send_nic,
  edge.receive_nic
FROM fabric.ring
JOIN shown
  ON shown.communicator_id = ring.communicator_id
LEFT JOIN fabric.member
  ON member.run_id = ring.run_id AND member.communicator_id = ring.communicator_id AND member.rank = ring.rank
LEFT JOIN fabric.edge
  ON edge.run_id = ring.run_id AND edge.communicator_id = ring.communicator_id AND edge.channel = ring.channel
  AND edge.source_rank = ring.rank AND edge.target_rank = ring.next_rank AND edge.connection_index = 0
WHERE ring.run_id = $run_id
ORDER BY ring.channel, ring.position
