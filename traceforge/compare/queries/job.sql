-- What two runs must share to be compared: ranks, software, devices, and how far clocks can be trusted.
SELECT
  r.run_name,
  r.world_size,
  (SELECT COUNT(*) FROM align.rank AS k WHERE k.run_id = r.run_id) AS ranks,
  (SELECT NULLIF(COUNT(DISTINCT k.host), 0) FROM align.rank AS k WHERE k.run_id = r.run_id) AS hosts,
  (
    SELECT COUNT(*) FROM timeline.iteration AS i
    WHERE i.run_id = r.run_id AND NOT i.is_warmup AND NOT i.is_partial
  ) AS iterations,
  (SELECT STRING_AGG(DISTINCT f.backend, ', ' ORDER BY f.backend) FROM raw.profile AS f
   JOIN align.rank AS k USING (source_id) WHERE k.run_id = r.run_id) AS backend,
  (SELECT STRING_AGG(DISTINCT f.nccl_version, ', ' ORDER BY f.nccl_version) FROM raw.profile AS f
   JOIN align.rank AS k USING (source_id) WHERE k.run_id = r.run_id) AS nccl_version,
  (SELECT STRING_AGG(DISTINCT f.device_name, ', ' ORDER BY f.device_name) FROM raw.profile AS f
   JOIN align.rank AS k USING (source_id) WHERE k.run_id = r.run_id) AS device,
  (SELECT STRING_AGG(DISTINCT c.dtype, ', ' ORDER BY c.dtype) FROM timeline.collective AS c
   WHERE c.run_id = r.run_id) AS dtype,
  (SELECT COALESCE(MAX(k.residual_ns), 0) FROM align.clock AS k WHERE k.run_id = r.run_id) AS residual_ns,
  (SELECT k.is_split FROM timeline.coverage AS k WHERE k.run_id = r.run_id) AS is_split,
  (SELECT CASE WHEN p.pace_ns < p.duration_ns THEN p.pace_ns END
   FROM attribute.pace AS p WHERE p.run_id = r.run_id) AS overlapping_ns,
  a.reference
FROM meta.run AS r
CROSS JOIN meta.analysis AS a
WHERE r.run_id = $run_id
