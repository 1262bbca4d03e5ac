-- Names of the events shown in detail, with the class and the thread of each.
SELECT
  recorded.rank,
  recorded.has_device,
  kind.kind_id,
  COALESCE(kind.track_id, -1) AS track_id,
  kind.name,
  named.class,
  CASE
    WHEN named.canonical_category IN ('kernel', 'gpu_memcpy', 'gpu_memset') THEN 'device'
    WHEN named.canonical_category IN ('cuda_runtime', 'cuda_driver') THEN 'launch'
    WHEN named.class = 'iteration' THEN 'step'
    WHEN named.canonical_category = 'cpu_op' THEN 'operation'
    ELSE 'other'
  END AS role
FROM align.rank AS recorded
JOIN raw.event_kind AS kind
  ON kind.source_id = recorded.source_id
  AND kind.phase = 'X'
LEFT JOIN align.name_class AS named
  ON named.category IS NOT DISTINCT FROM kind.category
  AND named.name = kind.name
WHERE recorded.run_id = $run_id
  AND recorded.rank IN ($ranks)
ORDER BY recorded.rank, kind.kind_id
