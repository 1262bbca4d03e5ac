-- Ingested files.
SELECT
  path,
  kind,
  rank,
  rank_origin,
  host,
  status,
  event_count,
  stored_count,
  size_bytes,
  content_hash
FROM meta.source
WHERE run_id = $run_id
ORDER BY rank NULLS LAST, kind, path, source_id
