"""Making communicators takes long: one takes 10 s and more, or all of one process take a minute together."""

from traceforge.fabric.rule import Rule

RULE = Rule(
    mode="runtime_control_plane",
    severity="notice",
    summary="Making {communicators:count communicator} takes up to {total_s:.1f} s a rank; the slowest takes "
    "{slowest_s:.1f} s, "
    "most of it in {phase}{of_ranks}.",
    next_step="kernels: loading of CUDA modules (see CUDA_MODULE_LOADING, storage of the container); bootstrap: the "
    "network "
    "of NCCL_SOCKET_IFNAME; topo and graphs: many GPUs and NICs; connections: the fabric. Fewer groups also help.",
    query="""
WITH timed AS (
  SELECT m.run_id, m.process, m.global_rank, t.source_id, r.line, t.phase, t.duration_ns, t.handle_id
  FROM raw.nccl_timing AS t
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.member AS m ON m.source_id = t.source_id AND m.handle_id = t.handle_id
  WHERE t.scope = 'init'
),
whole AS (
  SELECT run_id, process, SUM(duration_ns) AS total_ns, COUNT(*) AS communicators
  FROM timed
  WHERE phase = 'total'
  GROUP BY run_id, process
),
worst AS (
  SELECT run_id, ARG_MAX((source_id, handle_id), duration_ns) AS handle, MAX(duration_ns) AS slowest_ns,
    ARG_MAX(source_id, duration_ns) AS source_id, ARG_MAX(line, duration_ns) AS line,
    ARG_MAX(global_rank, duration_ns) AS global_rank
  FROM timed
  WHERE phase = 'total'
  GROUP BY run_id
),
part AS (
  SELECT w.run_id, ARG_MAX(t.phase, t.duration_ns) AS phase
  FROM worst AS w
  JOIN timed AS t ON t.run_id = w.run_id AND (t.source_id, t.handle_id) = w.handle AND t.phase <> 'total'
  GROUP BY w.run_id
)
SELECT
  w.run_id, 'job' AS subject_kind, 'all' AS subject, [w.global_rank] AS ranks, COALESCE(p.phase,
    'an unnamed part') AS phase,
  w.slowest_ns / 1e9 AS slowest_s, MAX(h.total_ns) / 1e9 AS total_s, ARG_MAX(h.communicators,
    h.total_ns) AS communicators,
  w.source_id, w.line, COUNT(*) AS citation_count
FROM worst AS w
JOIN whole AS h USING (run_id)
LEFT JOIN part AS p USING (run_id)
GROUP BY ALL
HAVING w.slowest_ns >= 10e9 OR MAX(h.total_ns) >= 60e9
""",
)
