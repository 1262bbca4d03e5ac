-- Which NICs the transfers of a communicator pass, by the logs: one row per (communicator, host, NIC). Empty without logs.
-- Slow communicators that share a NIC which no other communicator uses point at it (`findings/shared_path.py`).
-- Scope: run
CREATE OR REPLACE TABLE attribute.nic_use (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins timeline.communicator.communicator_id within the run.
  communicator_id,
  -- Host of the NIC.
  host,
  -- Device name, such as mlx5_0; its number where no name is printed.
  nic,
  -- Ranks in the job that send or receive through it in this communicator, ascending; unknown ones are left out.
  ranks
) AS
WITH used AS (
  SELECT run_id, communicator_id, source_host AS host, network, send_nic AS nic, source_rank AS rank
  FROM fabric.edge
  WHERE connection_index = 0 AND send_nic IS NOT NULL AND source_host IS NOT NULL
  UNION
  SELECT run_id, communicator_id, target_host, network, receive_nic, target_rank
  FROM fabric.edge
  WHERE connection_index = 0 AND receive_nic IS NOT NULL AND target_host IS NOT NULL
)
SELECT
  u.run_id, m.timeline_communicator_id, u.host, COALESCE(n.name, CAST(u.nic AS VARCHAR)),
  LIST_SORT(LIST(DISTINCT k.global_rank) FILTER (WHERE k.global_rank IS NOT NULL))
FROM used AS u
JOIN fabric.communicator_match AS m USING (run_id, communicator_id)
LEFT JOIN fabric.nic AS n
  ON n.run_id = u.run_id AND n.host = u.host AND n.nic = u.nic AND fabric.is_same_network(u.network, n.network)
LEFT JOIN fabric.member AS k ON k.run_id = u.run_id AND k.communicator_id = u.communicator_id AND k.rank = u.rank
WHERE NOT m.is_ambiguous
GROUP BY ALL
ORDER BY ALL
