-- Ingested files by kind.
SELECT
  kind,
  COUNT(*) AS files,
  COUNT(*) FILTER (is_used) AS used_files,
  CAST(SUM(size_bytes) AS BIGINT) AS size_bytes,
  CAST(SUM(event_count) AS BIGINT) AS events
FROM meta.source
LEFT JOIN align.file USING (run_id, source_id)
WHERE run_id = $run_id
GROUP BY kind
ORDER BY kind
