-- A setting is stated by all processes of some hosts and by none of other hosts of the same job.
-- Mode: runtime_control_plane
-- Severity: notice
-- Summary: Settings of {set_processes} processes are not set for the {unset_processes} on {on_hosts}{of_ranks}:
--   {settings}.
-- Next step: Give all hosts the same environment (the launcher's -x or --export, /etc/nccl.conf on every node), unless
--   these hosts differ.
WITH made AS (
  -- Logs from the first address on until a communicator is made: what a shorter one does not state, it may have lost.
  SELECT DISTINCT p.run_id, p.process, p.host, j.job
  FROM fabric.process AS p
  JOIN fabric.job AS j ON j.run_id = p.run_id AND j.process = p.process
  JOIN raw.nccl_communicator AS c ON c.source_id = p.source_id AND c.process_id = p.process_id
  WHERE c.complete_record_id IS NOT NULL AND EXISTS (
    SELECT 1
    FROM raw.nccl_nic AS n
    JOIN raw.nccl_record AS r USING (source_id, record_id)
    WHERE n.source_id = p.source_id AND r.process_id = p.process_id AND n.network = 'Bootstrap'
  )
),
whole AS (
  SELECT m.run_id, m.job, COUNT(*) AS processes, COUNT(DISTINCT m.host) AS hosts
  FROM made AS m
  GROUP BY m.run_id, m.job
  HAVING COUNT(*) = (SELECT COUNT(*) FROM fabric.job AS j WHERE j.run_id = m.run_id AND j.job = m.job)
),
stated AS (
  SELECT p.run_id, p.process, e.name, MIN((e.source_id, r.line)) AS first
  FROM raw.nccl_environment AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  -- Settings of output do not matter.
  WHERE e.origin = 'environment' AND NOT REGEXP_MATCHES(e.name, '(FILE|HOSTID|DIR|PATH)$')
    AND NOT STARTS_WITH(e.name, 'NCCL_DEBUG')
  GROUP BY p.run_id, p.process, e.name
),
by_host AS (
  SELECT m.run_id, m.job, m.host, n.name, COUNT(*) AS processes, COUNT(s.process) AS stating, MIN(s.first) AS first,
    LIST(m.process) AS members
  FROM made AS m
  JOIN whole AS w ON w.run_id = m.run_id AND w.job = m.job
  JOIN (SELECT DISTINCT run_id, name FROM stated) AS n ON n.run_id = m.run_id
  LEFT JOIN stated AS s ON s.run_id = m.run_id AND s.process = m.process AND s.name = n.name
  GROUP BY m.run_id, m.job, m.host, n.name
),
split AS (
  SELECT run_id, job, name, CAST(SUM(stating) AS BIGINT) AS set_processes,
    CAST(SUM(processes) FILTER (WHERE stating = 0) AS BIGINT) AS unset_processes,
    COUNT(*) FILTER (WHERE stating = 0) AS hosts, MIN(host) FILTER (WHERE stating = 0) AS host,
    LIST_SORT(FLATTEN(LIST(members) FILTER (WHERE stating = 0))) AS members, MIN(first) AS first
  FROM by_host
  GROUP BY run_id, job, name
  HAVING BOOL_AND(stating IN (0, processes)) AND COUNT(*) FILTER (WHERE stating = 0) > 0
    -- What one process alone reads says nothing of others.
    AND SUM(stating) > 1 AND SUM(stating) >= SUM(processes) FILTER (WHERE stating = 0)
)
SELECT
  x.run_id, 'host' AS subject_kind, x.host AS subject, MIN(x.set_processes) AS set_processes, x.unset_processes, x.hosts,
  LIST(x.name ORDER BY x.name) AS settings,
  (SELECT LIST(DISTINCT m.global_rank) FROM fabric.member AS m
   WHERE m.run_id = x.run_id AND LIST_CONTAINS(x.members, m.process)) AS ranks,
  MIN(x.first) AS first, CAST(SUM(x.set_processes) AS BIGINT) AS citation_count
FROM split AS x
GROUP BY x.run_id, x.job, x.host, x.hosts, x.unset_processes, x.members
