-- The network under a plug-in gave up a request: EFA, Slingshot and other networks of libfabric.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: {count:count network request} failed on host {subject}{of_ranks}: {text}
-- Next step: Read the log of the rank at the other end: a request fails where its peer ended first. Otherwise look at
--   the counters of the NIC and of its switch port, and at the versions of libfabric and of the plug-in.
SELECT
  p.run_id, 'host' AS subject_kind, p.host AS subject, ARG_MIN(e.text, (e.source_id, e.record_id))[:300] AS text,
  COUNT(DISTINCT (e.source_id, e.record_id)) AS count, LIST(DISTINCT m.global_rank) AS ranks, 'error message' AS basis,
  CASE WHEN BOOL_OR(CONTAINS(e.text, 'Unresponsive receiver'))
    THEN 'See whether the process at the other end lives. If it does, see whether the security group of the instances '
      || 'lets all traffic in from itself and out to itself: EFA is no IP, and a rule for 0.0.0.0/0 does not cover it.'
  END AS next_step,
  MIN((e.source_id, r.line)) AS first,
  COUNT(DISTINCT (e.source_id, e.record_id)) AS citation_count
FROM raw.nccl_event AS e
JOIN raw.nccl_record AS r USING (source_id, record_id)
JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
LEFT JOIN fabric.member AS m ON m.run_id = p.run_id AND m.process = p.process
WHERE e.kind = 'request_failed'
GROUP BY p.run_id, p.host
