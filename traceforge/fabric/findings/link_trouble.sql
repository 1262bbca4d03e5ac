-- A NIC or its port failed, or connections were closed by the other end and NCCL gave up; other closed connections, ports
-- that changed their state and connections that came about later are notices.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: Host {subject} reports {kind} {count:count time}{of_ranks}: {text}
-- Next step: Look at the NIC's and the switch port's counters and at the other end's log; a closed connection usually
--   follows the failure of the rank at its other end.
WITH gave_up AS (
  SELECT e.source_id, r.process_id, r.tid, MAX(e.record_id) AS record_id
  FROM raw.nccl_event AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  WHERE e.kind = 'unwinding' AND e.code IN (2, 6)
  GROUP BY e.source_id, r.process_id, r.tid
)
SELECT
  p.run_id, 'host' AS subject_kind, p.host AS subject, REPLACE(e.kind, '_', ' ') AS kind,
  ARG_MIN(e.text, (e.source_id, e.record_id))[:200] AS text,
  COUNT(DISTINCT (e.source_id, e.record_id)) AS count, LIST(DISTINCT m.global_rank) AS ranks, 'error message' AS basis,
  CASE
    WHEN e.kind IN ('connect_retry', 'port_event') THEN 'notice'
    WHEN e.kind = 'connection_closed' AND NOT COALESCE(BOOL_OR(r.level = 'WARN' AND g.record_id > e.record_id), FALSE)
      THEN 'notice'
  END AS severity,
  CASE e.kind
    WHEN 'port_event' THEN 'Nothing, unless operations fail or slow down at the same time: the subnet manager or an '
      || 'administrator changed something about the port that NCCL lives with.'
    WHEN 'connect_retry' THEN 'Nothing, unless it goes on: ranks that start later are not there yet. See whether one '
      || 'process or host of the job comes up late.'
  END AS next_step,
  MIN((e.source_id, r.line)) AS first,
  COUNT(DISTINCT (e.source_id, e.record_id)) AS citation_count
FROM raw.nccl_event AS e
JOIN raw.nccl_record AS r USING (source_id, record_id)
JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
LEFT JOIN gave_up AS g ON g.source_id = e.source_id AND g.process_id = r.process_id AND g.tid = r.tid
LEFT JOIN fabric.member AS m ON m.run_id = p.run_id AND m.process = p.process
-- The service thread sees every local rank leave at a normal end.
WHERE e.kind IN ('async_event', 'device_failed', 'port_event', 'connect_retry')
  OR (e.kind = 'connection_closed' AND NOT CONTAINS(e.text, '[Service thread]'))
GROUP BY p.run_id, p.host, e.kind
