-- Launches of CUDA and HIP graphs by rank: kernels and device time of each, and launches whose work is not in the trace.
--
-- Which operation a kernel of a graph stems from is unknown: its capture knew, its launch does not.
WITH launched AS (
  SELECT e.source_id, e.event_id, e.name AS call, e.correlation, e.duration_ns
  FROM raw.event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE c.canonical_category IN ('cuda_runtime', 'cuda_driver') AND e.name ILIKE '%GraphLaunch%'
),
worked AS (
  SELECT e.source_id, e.correlation, COUNT(*) FILTER (WHERE c.canonical_category = 'kernel') AS kernels,
    COUNT(*) FILTER (WHERE c.canonical_category <> 'kernel') AS copies_and_memsets, SUM(e.duration_ns) AS duration_ns
  FROM raw.event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE c.canonical_category IN ('kernel', 'gpu_memcpy', 'gpu_memset') AND e.correlation IS NOT NULL
  GROUP BY e.source_id, e.correlation
)
SELECT k.run_id, k.rank, l.call, COUNT(*) AS launches, MEDIAN(l.duration_ns) / 1e3 AS median_launch_us,
  COUNT(*) FILTER (WHERE w.correlation IS NULL) AS launches_without_recorded_work,
  MIN(w.kernels) AS least_kernels, MEDIAN(w.kernels) AS median_kernels, MAX(w.kernels) AS most_kernels,
  SUM(w.copies_and_memsets) AS copies_and_memsets, SUM(w.duration_ns) / 1e6 AS device_ms
FROM launched AS l
JOIN align.rank AS k USING (source_id)
LEFT JOIN worked AS w USING (source_id, correlation)
GROUP BY k.run_id, k.rank, l.call
ORDER BY k.run_id, k.rank, l.call
