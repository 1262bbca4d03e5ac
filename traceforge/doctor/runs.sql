-- Every run of the database with what was ingested of it.
SELECT
  r.run_id, r.run_name, r.world_size,
  (SELECT COUNT(*) FROM align.rank AS k WHERE k.run_id = r.run_id) AS ranks,
  (SELECT y.layout FROM timeline.layout AS y WHERE y.run_id = r.run_id) AS layout,
  (SELECT COUNT(DISTINCT t.rank) FROM graph.trace AS t WHERE t.run_id = r.run_id) AS execution_trace_ranks,
  (SELECT COUNT(DISTINCT m.global_rank) FROM fabric.member AS m WHERE m.run_id = r.run_id) AS log_ranks,
  (SELECT COUNT(DISTINCT p.process) FROM fabric.process AS p WHERE p.run_id = r.run_id) AS log_processes,
  (SELECT LIST(DISTINCT h.host ORDER BY h.host) FROM (
     SELECT s.run_id, s.host FROM meta.source AS s
     UNION SELECT p.run_id, p.host FROM fabric.process AS p
   ) AS h WHERE h.run_id = r.run_id AND h.host IS NOT NULL) AS hosts,
  (SELECT COUNT(*) FROM meta.source AS s WHERE s.run_id = r.run_id) AS files,
  (SELECT CAST(SUM(s.size_bytes) AS BIGINT) FROM meta.source AS s WHERE s.run_id = r.run_id) AS file_bytes,
  (SELECT CAST(SUM(s.event_count) AS BIGINT) FROM meta.source AS s WHERE s.run_id = r.run_id) AS events,
  (SELECT LIST(DISTINCT s.kind ORDER BY s.kind) FROM meta.source AS s WHERE s.run_id = r.run_id) AS kinds,
  (SELECT COUNT(*) FROM timeline.iteration AS i WHERE i.run_id = r.run_id) AS iterations,
  (SELECT COUNT(*) FROM timeline.iteration AS i
   WHERE i.run_id = r.run_id AND NOT i.is_warmup AND NOT i.is_partial) AS judged_iterations,
  (SELECT COUNT(DISTINCT c.match_id) FROM timeline.collective AS c WHERE c.run_id = r.run_id) AS collectives,
  (SELECT LIST(DISTINCT f.device_name ORDER BY f.device_name) FROM raw.profile AS f
   JOIN meta.source AS s USING (source_id) WHERE s.run_id = r.run_id AND f.device_name IS NOT NULL) AS devices,
  (SELECT LIST(DISTINCT f.backend ORDER BY f.backend) FROM raw.profile AS f
   JOIN meta.source AS s USING (source_id) WHERE s.run_id = r.run_id AND f.backend IS NOT NULL) AS backends,
  (SELECT LIST(DISTINCT f.metadata->>'pytorch_version') FROM raw.profile AS f
   JOIN meta.source AS s USING (source_id)
   WHERE s.run_id = r.run_id AND (f.metadata->>'pytorch_version') IS NOT NULL) AS pytorch_versions,
  (SELECT LIST(DISTINCT v.version ORDER BY v.version) FROM (
     SELECT f.nccl_version AS version, s.run_id FROM raw.profile AS f JOIN meta.source AS s USING (source_id)
     UNION SELECT p.nccl_version, p.run_id FROM fabric.process AS p
   ) AS v WHERE v.run_id = r.run_id AND v.version IS NOT NULL) AS nccl_versions
FROM meta.run AS r
ORDER BY r.run_id
