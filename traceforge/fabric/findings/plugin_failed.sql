-- The plug-in of the network does not start, so NCCL looks for another network: a problem where that is sockets between
-- nodes. Where connections are logged, these tell (socket_fallback); a job of one node needs no network.
-- Mode: fabric_contention
-- Severity: notice
-- Summary: On {on_hosts}{of_ranks}, the network's plug-in does not start: {text}{effect}
-- Next step: `fi_info -p efa` (`-p cxi` on Slingshot) must list devices, on the host and in the container: it takes the
--   driver, /dev/infiniband in the container, and a plug-in made for this libfabric (one EFA installer brings both).
--   FI_PROVIDER must not exclude the provider; FI_LOG_LEVEL=info has libfabric say why it refuses one.
WITH failed AS (
  SELECT p.run_id, p.process, p.host, e.source_id, e.record_id, r.line, RTRIM(e.text, '. ') AS text
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.kind = 'plugin_failed'
),
used AS (
  SELECT p.run_id, p.process, ARG_MAX(g.name, g.record_id) AS network
  FROM raw.nccl_plugin AS g
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = g.source_id AND p.process_id = r.process_id
  WHERE g.kind = 'NET' AND g.event = 'used' AND g.name IS NOT NULL
  GROUP BY p.run_id, p.process
),
spread AS (
  -- NULL where no communicator, or not all of one, is known.
  SELECT m.run_id, m.process, MAX(CASE WHEN c.node_count > 1 THEN 2 ELSE c.node_count END) AS nodes,
    COUNT(*) FILTER (c.node_count IS NULL) AS unknown
  FROM fabric.member AS m
  LEFT JOIN fabric.communicator AS c USING (run_id, communicator_id)
  GROUP BY m.run_id, m.process
)
SELECT
  f.run_id, 'host' AS subject_kind, MIN(f.host) AS subject, COUNT(DISTINCT f.host) AS hosts,
  ARG_MIN(f.text, (f.source_id, f.line))[:200] AS text,
  CASE
    WHEN MIN(u.network) IS NULL THEN '.'
    WHEN BOOL_AND(u.network = 'Socket') AND MAX(s.nodes) > 1
      THEN ': its nodes communicate over TCP sockets.'
    WHEN BOOL_AND(u.network = 'Socket') THEN ': NCCL uses TCP sockets between nodes, if there are several.'
    ELSE ': NCCL uses ' || MIN(u.network) || '.'
  END AS effect,
  CASE WHEN BOOL_AND(u.network = 'Socket') AND MAX(s.nodes) > 1 THEN 'problem' END AS severity,
  LIST(DISTINCT m.global_rank) AS ranks, 'error message' AS basis,
  MIN((f.source_id, f.line)) AS first, COUNT(DISTINCT (f.source_id, f.record_id)) AS citation_count
FROM failed AS f
LEFT JOIN used AS u USING (run_id, process)
LEFT JOIN spread AS s USING (run_id, process)
LEFT JOIN fabric.member AS m ON m.run_id = f.run_id AND m.process = f.process
WHERE (s.nodes IS DISTINCT FROM 1 OR s.unknown > 0)
  AND f.run_id NOT IN (SELECT e.run_id FROM fabric.edge AS e WHERE e.path_class = 'socket')
GROUP BY f.run_id
