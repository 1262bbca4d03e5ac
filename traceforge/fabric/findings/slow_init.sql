-- Creating communicators takes long: one of them, or all of a process together.
-- Mode: runtime_control_plane
-- Severity: notice
-- Summary: Creating {communicators:count communicator} takes up to {total_s:.1f} s a rank; the slowest takes
--   {slowest_s:.1f} s, most of it in {phase}{of_ranks}.
-- Next step: kernels: loading of CUDA modules (see CUDA_MODULE_LOADING, storage of the container); bootstrap: the
--   network of NCCL_SOCKET_IFNAME; topo and graphs: many GPUs and NICs; connections: the fabric. Fewer groups also
--   help.
WITH timed AS (
  SELECT m.run_id, m.process, m.global_rank, t.source_id, t.handle_id, r.line, t.phase, t.duration_ns
  FROM raw.nccl_timing AS t
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.member AS m ON m.source_id = t.source_id AND m.handle_id = t.handle_id
  WHERE t.scope = 'init'
),
by_process AS (
  SELECT run_id, process, SUM(duration_ns) AS total_ns, COUNT(*) AS communicators
  FROM timed
  WHERE phase = 'total'
  GROUP BY run_id, process
),
slowest AS (
  SELECT run_id, ARG_MAX((source_id, handle_id), duration_ns) AS handle, MAX(duration_ns) AS duration_ns,
    ARG_MAX((source_id, line), duration_ns) AS first, ARG_MAX(global_rank, duration_ns) AS global_rank
  FROM timed
  WHERE phase = 'total'
  GROUP BY run_id
),
part AS (
  SELECT s.run_id, ARG_MAX(t.phase, t.duration_ns) AS phase
  FROM slowest AS s
  JOIN timed AS t ON t.run_id = s.run_id AND (t.source_id, t.handle_id) = s.handle AND t.phase <> 'total'
  GROUP BY s.run_id
)
SELECT
  s.run_id, 'job' AS subject_kind, 'all' AS subject, [s.global_rank] AS ranks,
  COALESCE(p.phase, 'an unnamed part') AS phase, s.duration_ns / 1e9 AS slowest_s, MAX(b.total_ns) / 1e9 AS total_s,
  ARG_MAX(b.communicators, b.total_ns) AS communicators, s.first, COUNT(*) AS citation_count
FROM slowest AS s
JOIN by_process AS b USING (run_id)
LEFT JOIN part AS p USING (run_id)
GROUP BY ALL
HAVING s.duration_ns >= (SELECT value FROM meta.threshold WHERE name = 'fabric.SLOW_INIT_NS')
  OR MAX(b.total_ns) >= (SELECT value FROM meta.threshold WHERE name = 'fabric.SLOW_INITS_NS')
