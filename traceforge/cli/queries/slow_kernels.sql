-- The same kernel, slow on one device: time above the median over ranks, the n-th call against the n-th.
WITH launched AS (
  SELECT k.run_id, k.rank, e.name, e.duration_ns,
    ROW_NUMBER() OVER (PARTITION BY k.run_id, k.rank, e.name ORDER BY e.raw_start_ns, e.event_id) AS place,
    COUNT(*) OVER (PARTITION BY k.run_id, k.rank, e.name) AS calls
  FROM raw.event AS e
  JOIN align.rank AS k USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name IS NOT DISTINCT FROM e.name
  WHERE c.class = 'compute' AND c.canonical_category = 'kernel' AND e.duration_ns > 0
),
compared AS (
  SELECT run_id, rank, name, calls, duration_ns,
    MEDIAN(duration_ns) OVER (PARTITION BY run_id, name, calls, place) AS reference_ns,
    COUNT(*) OVER (PARTITION BY run_id, name, calls, place) AS ranks
  FROM launched
)
SELECT run_id, rank, name, calls, SUM(duration_ns) / 1e6 AS total_ms,
  SUM(duration_ns - reference_ns) / 1e6 AS above_median_ms, SUM(duration_ns) / SUM(reference_ns) AS ratio
FROM compared
WHERE ranks > 1
GROUP BY run_id, rank, name, calls
HAVING SUM(duration_ns) > 1.05 * SUM(reference_ns)
QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY above_median_ms DESC, rank, name) <= 50
ORDER BY above_median_ms DESC, run_id, rank, name
