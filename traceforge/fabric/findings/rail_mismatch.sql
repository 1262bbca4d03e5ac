-- Traffic between nodes leaves on one NIC and arrives on another: it crosses rails where the fabric has them.
-- Mode: fabric_contention
-- Severity: notice
-- Summary: {crossing} of {edges} ring connections between nodes leave on one NIC and arrive on another, such as
--   {example}: on a rail fabric they cross rails.
-- Next step: If the fabric has rails, set NCCL_CROSS_NIC=0 and give all nodes the same order of NICs (NCCL_IB_HCA); if
--   it has none, this is as it should be.
WITH named AS (
  SELECT e.*,
    COALESCE(a.name, CAST(e.send_nic AS VARCHAR)) AS send_name,
    COALESCE(b.name, CAST(e.receive_nic AS VARCHAR)) AS receive_name
  FROM fabric.edge AS e
  JOIN fabric.ring AS g
    ON g.run_id = e.run_id AND g.communicator_id = e.communicator_id AND g.channel = e.channel
    AND g.rank = e.source_rank AND g.next_rank = e.target_rank
  LEFT JOIN fabric.nic AS a
    ON a.run_id = e.run_id AND a.host = e.source_host AND a.nic = e.send_nic
      AND fabric.is_same_network(e.network, a.network)
  LEFT JOIN fabric.nic AS b
    ON b.run_id = e.run_id AND b.host = e.target_host AND b.nic = e.receive_nic
      AND fabric.is_same_network(e.network, b.network)
  WHERE e.connection_index = 0 AND e.send_nic IS NOT NULL AND e.receive_nic IS NOT NULL AND e.path_class <> 'socket'
)
SELECT
  run_id, 'job' AS subject_kind, 'all' AS subject,
  COUNT(*) FILTER (WHERE send_name <> receive_name) AS crossing,
  COUNT(*) AS edges,
  MIN(send_name || ' to ' || receive_name) FILTER (WHERE send_name <> receive_name) AS example,
  MIN((source_id, line)) FILTER (WHERE send_name <> receive_name) AS first,
  COUNT(*) FILTER (WHERE send_name <> receive_name) AS citation_count
FROM named
GROUP BY run_id
HAVING COUNT(*) FILTER (WHERE send_name <> receive_name) > 0
