-- Recorded ranks and their hosts.
SELECT
  rank,
  MIN(host) AS host
FROM (
  SELECT rank, host
  FROM meta.source
  LEFT JOIN align.file USING (run_id, source_id)
  WHERE run_id = $run_id AND (status = 'used' OR is_used)
  UNION ALL
  SELECT rank, host FROM align.clock WHERE run_id = $run_id
) AS recorded
WHERE rank IS NOT NULL
GROUP BY rank
ORDER BY rank
