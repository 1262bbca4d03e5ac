-- Nodes communicate over TCP sockets: a problem where a faster NIC was found, its plug-in does not start or sockets were
-- requested, else a notice.
-- Mode: fabric_contention
-- Severity: notice
-- Summary: {socket_edges} of {edges} connections between nodes run over TCP sockets{of_ranks}{reason}.
-- Next step: Let NCCL use the fast network: the driver or plug-in (libibverbs, aws-ofi-nccl) must be visible inside the
--   container, and NCCL_NET, NCCL_IB_DISABLE and NCCL_IB_HCA must not exclude it.
WITH reason AS (
  SELECT p.run_id, MIN(g.name || ' found no device') AS reason
  FROM raw.nccl_plugin AS g
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = g.source_id AND p.process_id = r.process_id
  WHERE g.event = 'no_device'
  GROUP BY p.run_id
),
broken AS (
  SELECT s.run_id, ARG_MIN(RTRIM(e.text, '. '), (e.source_id, e.record_id))[:200] AS text
  FROM raw.nccl_event AS e
  JOIN meta.source AS s USING (source_id)
  WHERE e.kind = 'plugin_failed'
  GROUP BY s.run_id
),
disabled AS (
  SELECT p.run_id, MIN(e.name || '=' || e.value) AS setting
  FROM raw.nccl_environment AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE (e.name = 'NCCL_IB_DISABLE' AND e.value = '1') OR (e.name = 'NCCL_NET' AND LOWER(e.value) = 'socket')
  GROUP BY p.run_id
),
who AS (
  SELECT run_id, LIST(DISTINCT global_rank) AS ranks FROM fabric.network_end WHERE network = 'Socket' GROUP BY run_id
),
fast AS (
  SELECT run_id, MIN(name) AS name FROM fabric.nic WHERE network <> 'Socket' GROUP BY run_id
)
SELECT
  e.run_id, 'job' AS subject_kind, 'all' AS subject,
  COUNT(*) FILTER (WHERE e.path_class = 'socket') AS socket_edges,
  COUNT(*) AS edges,
  MIN(w.ranks) AS ranks,
  CASE WHEN COALESCE(MIN(f.name), MIN(d.setting), MIN(b.text)) IS NOT NULL THEN 'problem' END AS severity,
  CASE WHEN MIN(d.setting) IS NULL AND MIN(b.text) IS NOT NULL
    THEN 'The plug-in must start: `fi_info -p efa` (`-p cxi` on Slingshot) must list devices, on the host and in the '
      || 'container (/dev/infiniband), the plug-in must be made for this libfabric (one EFA installer brings both), and '
      || 'FI_PROVIDER must not exclude the provider.'
  END AS next_step,
  CASE
    WHEN MIN(d.setting) IS NOT NULL THEN ', as ' || MIN(d.setting) || ' asks for'
    WHEN MIN(b.text) IS NOT NULL THEN '; the plug-in of the fast network does not start: ' || MIN(b.text)
    WHEN MIN(f.name) IS NOT NULL THEN ', although NIC ' || MIN(f.name) || ' was found'
    WHEN MIN(r.reason) IS NOT NULL THEN '; ' || MIN(r.reason)
    ELSE ''
  END AS reason,
  MIN((e.source_id, e.line)) FILTER (WHERE e.path_class = 'socket') AS first,
  COUNT(*) FILTER (WHERE e.path_class = 'socket') AS citation_count
FROM fabric.edge AS e
LEFT JOIN who AS w ON w.run_id = e.run_id
LEFT JOIN reason AS r ON r.run_id = e.run_id
LEFT JOIN broken AS b ON b.run_id = e.run_id
LEFT JOIN disabled AS d ON d.run_id = e.run_id
LEFT JOIN fast AS f ON f.run_id = e.run_id
WHERE e.transport = 'NET'
GROUP BY e.run_id
HAVING COUNT(*) FILTER (WHERE e.path_class = 'socket') > 0
