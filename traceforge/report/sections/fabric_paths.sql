-- How ranks reach one another: connections by class of path, within and between nodes.
SELECT
  path_class,
  COALESCE(network, '') AS network,
  COUNT(*) AS connections,
  COUNT(*) FILTER (WHERE proxy_rank IS NOT NULL) AS relayed,
  COUNT(DISTINCT (communicator_id, channel)) AS channels
FROM fabric.edge
WHERE run_id = $run_id AND connection_index = 0
GROUP BY path_class, COALESCE(network, '')
ORDER BY connections DESC, path_class, network
