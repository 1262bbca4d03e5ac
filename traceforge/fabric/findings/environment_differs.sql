-- A setting has one value on some ranks and another on others of the same job.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: {subject} differs between processes: {values}; the odd ones{of_ranks} have {odd_value}.
-- Next step: Give all ranks the same environment (the launcher's -x or --export, /etc/nccl.conf on every node).
WITH stated AS (
  SELECT p.run_id, p.process, j.job, e.name, ARG_MAX(e.value, e.record_id) AS value, MIN((e.source_id, r.line)) AS first
  FROM raw.nccl_environment AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  LEFT JOIN fabric.job AS j ON j.run_id = p.run_id AND j.process = p.process
  -- What names an interface, a device or a file may well differ from node to node; settings of output do not matter.
  WHERE e.origin = 'environment' AND NOT REGEXP_MATCHES(e.name, '(IFNAME|HCA|FILE|HOSTID|DIR|PATH|GID_INDEX)$')
    AND NOT STARTS_WITH(e.name, 'NCCL_DEBUG')
  GROUP BY p.run_id, p.process, j.job, e.name
),
counted AS (
  SELECT run_id, job, name, value, COUNT(*) AS processes, LIST(process) AS members, MIN(first) AS first
  FROM stated
  GROUP BY run_id, job, name, value
),
odd AS (
  SELECT run_id, name,
    ARG_MIN(value, (processes, value)) AS odd_value,
    ARG_MIN(members, (processes, value)) AS members,
    ARG_MIN(first, (processes, value)) AS first,
    LIST(value || ' (' || processes || ')' ORDER BY processes DESC, value) AS values
  FROM counted
  GROUP BY run_id, job, name
  HAVING COUNT(*) > 1
)
SELECT
  o.run_id, 'job' AS subject_kind, o.name AS subject, o.values, o.odd_value,
  (SELECT LIST(DISTINCT m.global_rank) FROM fabric.member AS m
   WHERE m.run_id = o.run_id AND LIST_CONTAINS(o.members, m.process)) AS ranks,
  o.first, LEN(o.members) AS citation_count
FROM odd AS o
