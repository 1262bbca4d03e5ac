-- Launches by rank: how many an iteration, how long the calls take, and how many kernels are shorter than their launch.
WITH steps AS (
  SELECT run_id, rank, COUNT(*) AS iterations FROM timeline.rank_iteration GROUP BY run_id, rank
),
launched AS (
  SELECT e.source_id, e.correlation, MIN(e.raw_start_ns) AS raw_start_ns, MIN(e.duration_ns) AS duration_ns
  FROM raw.event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name IS NOT DISTINCT FROM e.name
  WHERE c.class = 'launch' AND e.correlation IS NOT NULL
  GROUP BY e.source_id, e.correlation
)
SELECT k.run_id, k.rank, COUNT(*) AS kernels, COUNT(*) / ANY_VALUE(s.iterations) AS kernels_an_iteration,
  MEDIAN(l.duration_ns) / 1e3 AS median_launch_us, MEDIAN(e.duration_ns) / 1e3 AS median_kernel_us,
  COUNT(*) FILTER (WHERE e.duration_ns < l.duration_ns) / COUNT(*) AS shorter_than_launch_share,
  MEDIAN(e.raw_start_ns - l.raw_start_ns) / 1e3 AS median_delay_us
FROM raw.event AS e
JOIN align.rank AS k USING (source_id)
JOIN launched AS l USING (source_id, correlation)
LEFT JOIN steps AS s ON s.run_id = k.run_id AND s.rank = k.rank
WHERE e.stream IS NOT NULL AND e.duration_ns IS NOT NULL
GROUP BY k.run_id, k.rank
ORDER BY k.run_id, k.rank
