-- From the launch on the host to the start on the device, by rank: a queue ahead of the device, or a late host.
WITH launched AS (
  SELECT e.source_id, e.correlation, MIN(e.raw_start_ns) AS raw_start_ns
  FROM raw.event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name IS NOT DISTINCT FROM e.name
  WHERE c.class = 'launch' AND e.correlation IS NOT NULL
  GROUP BY e.source_id, e.correlation
)
SELECT k.run_id, k.rank, COUNT(*) AS kernels, MEDIAN(e.raw_start_ns - l.raw_start_ns) / 1e6 AS median_delay_ms,
  QUANTILE_CONT(e.raw_start_ns - l.raw_start_ns, 0.95) / 1e6 AS p95_delay_ms,
  COUNT(*) FILTER (WHERE e.raw_start_ns - l.raw_start_ns < 20000) / COUNT(*) AS starved_share
FROM raw.event AS e
JOIN align.rank AS k USING (source_id)
JOIN launched AS l ON l.source_id = e.source_id AND l.correlation = e.correlation
WHERE e.stream IS NOT NULL AND e.category IN ('kernel', 'Kernel')
GROUP BY k.run_id, k.rank
ORDER BY k.run_id, k.rank
