"""NCCL could not keep processes near their GPU: the CPUs they may use are not those beside it."""

from traceforge.fabric.rule import Rule

RULE = Rule(
    mode="runtime_control_plane",
    severity="problem",
    summary="On {hosts:count host}, such as {subject}, processes are not kept on the CPU cores near their "
    "GPU{of_ranks}.",
    next_step="Bind each process to the NUMA node of its GPU (srun --cpu-bind, numactl, the pod's CPU set), or let "
    "NCCL do it "
    "by leaving it all cores.",
    query="""
SELECT
  p.run_id, 'host' AS subject_kind, MIN(p.host) AS subject, COUNT(DISTINCT p.host) AS hosts,
  LIST(DISTINCT m.global_rank) AS ranks,
  ARG_MIN(c.source_id, (c.source_id, r.line)) AS source_id, ARG_MIN(r.line, (c.source_id, r.line)) AS line,
  COUNT(DISTINCT (c.source_id, c.record_id)) AS citation_count
FROM raw.nccl_cpu_placement AS c
JOIN raw.nccl_record AS r USING (source_id, record_id)
JOIN fabric.process AS p ON p.source_id = c.source_id AND p.process_id = r.process_id
LEFT JOIN fabric.member AS m ON m.run_id = p.run_id AND m.process = p.process
WHERE NOT c.is_near_gpu
GROUP BY p.run_id
""",
)
