-- Processes of one job chose different networks: ranks of different networks cannot connect.
-- Mode: fabric_contention
-- Severity: problem
-- Summary: Processes use different networks: {networks}; the odd ones{of_ranks}, on {on_hosts}, use {odd_network}{reason}.
-- Next step: Ranks of different networks cannot connect, and a job that tries hangs as it starts. Make the network of the
--   others visible on these hosts and in their containers (devices, libibverbs, plug-in), and give all ranks the same
--   NCCL_NET, NCCL_IB_DISABLE and NCCL_IB_HCA.
WITH stated AS (
  SELECT p.run_id, p.process, p.host, MIN(j.job) AS job, ARG_MAX(g.name, g.record_id) AS network,
    MIN((g.source_id, r.line)) AS first
  FROM raw.nccl_plugin AS g
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = g.source_id AND p.process_id = r.process_id
  LEFT JOIN fabric.job AS j ON j.run_id = p.run_id AND j.process = p.process
  WHERE g.kind = 'NET' AND g.event = 'used' AND g.name IS NOT NULL
  GROUP BY p.run_id, p.process, p.host
),
lacking AS (
  SELECT p.run_id, p.process, MIN('NET/' || g.name || ' found no device') AS reason
  FROM raw.nccl_plugin AS g
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = g.source_id AND p.process_id = r.process_id
  WHERE g.event = 'no_device'
  GROUP BY p.run_id, p.process
),
counted AS (
  SELECT s.run_id, s.job, s.network, COUNT(*) AS processes, LIST(s.process) AS members, MIN(s.first) AS first,
    MIN(s.host) AS host, COUNT(DISTINCT s.host) AS hosts, MIN(l.reason) AS reason
  FROM stated AS s
  LEFT JOIN lacking AS l USING (run_id, process)
  GROUP BY s.run_id, s.job, s.network
),
odd AS (
  -- Where as many use either, the slower one is odd.
  SELECT *, ROW_NUMBER() OVER (same ORDER BY processes, network <> 'Socket', network) AS place,
    LIST(network || ' (' || processes || ')') OVER (
      same ORDER BY processes DESC, network ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    ) AS networks
  FROM counted
  WINDOW same AS (PARTITION BY run_id, job)
)
SELECT
  o.run_id, CASE WHEN o.hosts = 1 THEN 'host' ELSE 'job' END AS subject_kind, o.host AS subject, o.hosts, o.networks,
  o.network AS odd_network, COALESCE('; ' || o.reason, '') AS reason,
  (SELECT LIST(DISTINCT m.global_rank) FROM fabric.member AS m
   WHERE m.run_id = o.run_id AND LIST_CONTAINS(o.members, m.process)) AS ranks,
  o.first, o.processes AS citation_count
FROM odd AS o
WHERE o.place = 1 AND LEN(o.networks) > 1
