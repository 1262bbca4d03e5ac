-- Copies, and memory sets apart: number, bytes and GB/s by rank and direction (the kind that the trace names).
SELECT k.run_id, k.rank, CASE c.canonical_category WHEN 'gpu_memset' THEN 'memset' ELSE 'copy' END AS kind,
  e.name AS direction, COUNT(*) AS calls, SUM(e.size_bytes) AS size_bytes,
  SUM(e.duration_ns) / 1e6 AS ms,
  SUM(e.size_bytes) / NULLIF(SUM(e.duration_ns) FILTER (WHERE e.size_bytes IS NOT NULL), 0) AS gb_per_s,
  MEDIAN(e.size_bytes) AS median_size_bytes
FROM raw.event AS e
JOIN align.rank AS k USING (source_id)
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name IS NOT DISTINCT FROM e.name
WHERE c.canonical_category IN ('gpu_memcpy', 'gpu_memset') AND e.stream IS NOT NULL AND e.duration_ns > 0
GROUP BY k.run_id, k.rank, c.canonical_category, e.name
ORDER BY k.run_id, kind, ms DESC, k.rank, direction
