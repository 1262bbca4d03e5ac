-- NCCL could not bind processes to the CPUs near their GPU: their CPU set does not include them.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: On {on_hosts}, processes are not bound to the CPU cores near their GPU{of_ranks}.
-- Next step: Bind each process to the NUMA node of its GPU (srun --cpu-bind, numactl, the pod's CPU set), or let NCCL
--   do it by leaving it all cores.
SELECT
  p.run_id, 'host' AS subject_kind, MIN(p.host) AS subject, COUNT(DISTINCT p.host) AS hosts,
  LIST(DISTINCT m.global_rank) AS ranks,
  MIN((c.source_id, r.line)) AS first,
  COUNT(DISTINCT (c.source_id, c.record_id)) AS citation_count
FROM raw.nccl_cpu_placement AS c
JOIN raw.nccl_record AS r USING (source_id, record_id)
JOIN fabric.process AS p ON p.source_id = c.source_id AND p.process_id = r.process_id
LEFT JOIN fabric.member AS m ON m.run_id = p.run_id AND m.process = p.process
WHERE NOT c.is_near_gpu
GROUP BY p.run_id
