-- Creating communicators takes long: one of them, or all of a process together.
-- Mode: runtime_control_plane
-- Severity: notice
-- Summary: Creating {communicators:count communicator} takes up to {total_s:.1f} s a rank; the slowest takes
--   {slowest_s:.1f} s, most of it in {phase}{of_ranks}.
-- Next step: kernels: loading of CUDA modules (see CUDA_MODULE_LOADING, storage of the container); bootstrap: the
--   network of NCCL_SOCKET_IFNAME; topo and graphs: many GPUs and NICs; connections: the fabric. Fewer groups also
--   help.
WITH by_communicator AS (
  SELECT m.run_id, m.process, m.global_rank,
    MAX(t.duration_ns) FILTER (WHERE t.phase = 'total') AS duration_ns,
    COALESCE(ARG_MAX(t.phase, t.duration_ns) FILTER (WHERE t.phase <> 'total'), 'an unnamed part') AS phase,
    MIN((t.source_id, r.line)) FILTER (WHERE t.phase = 'total') AS first
  FROM raw.nccl_timing AS t
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.member AS m ON m.source_id = t.source_id AND m.handle_id = t.handle_id
  WHERE t.scope = 'init'
  GROUP BY m.run_id, m.process, m.global_rank, t.source_id, t.handle_id
),
by_process AS (
  SELECT run_id, process, SUM(duration_ns) AS total_ns, COUNT(duration_ns) AS communicators
  FROM by_communicator
  GROUP BY run_id, process
)
SELECT
  run_id, 'job' AS subject_kind, 'all' AS subject,
  -- Of processes that take as long, the first is named.
  [ARG_MAX(c.global_rank, (c.duration_ns, -process))] AS ranks,
  ARG_MAX(c.phase, (c.duration_ns, -process)) AS phase,
  MAX(c.duration_ns) / 1e9 AS slowest_s, MAX(p.total_ns) / 1e9 AS total_s,
  ARG_MAX(p.communicators, (p.total_ns, -process)) AS communicators,
  ARG_MAX(c.first, (c.duration_ns, -process)) AS first, COUNT(DISTINCT process) AS citation_count
FROM by_communicator AS c
JOIN by_process AS p USING (run_id, process)
GROUP BY run_id
HAVING MAX(c.duration_ns) >= (SELECT value FROM meta.threshold WHERE name = 'fabric.SLOW_INIT_NS')
  OR MAX(p.total_ns) >= (SELECT value FROM meta.threshold WHERE name = 'fabric.SLOW_INITS_NS')
