-- How much work is launched and not yet done, by rank: mean over time, the most, and the share of time with none.
WITH launched AS (
  SELECT e.source_id, e.correlation, MIN(e.raw_start_ns) AS raw_start_ns
  FROM raw.event AS e
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name IS NOT DISTINCT FROM e.name
  WHERE c.class = 'launch' AND e.correlation IS NOT NULL
  GROUP BY e.source_id, e.correlation
),
work AS (
  SELECT k.run_id, k.rank, LEAST(l.raw_start_ns, e.raw_start_ns) AS raw_start_ns,
    e.raw_start_ns + e.duration_ns AS raw_end_ns
  FROM raw.event AS e
  JOIN align.rank AS k USING (source_id)
  JOIN launched AS l USING (source_id, correlation)
  WHERE e.stream IS NOT NULL AND e.duration_ns IS NOT NULL
),
change AS (
  SELECT run_id, rank, raw_start_ns AS raw_ns, 1 AS step FROM work
  UNION ALL
  SELECT run_id, rank, raw_end_ns, -1 FROM work
),
moment AS (
  SELECT run_id, rank, raw_ns, SUM(SUM(step)) OVER (PARTITION BY run_id, rank ORDER BY raw_ns) AS length,
    COALESCE(LEAD(raw_ns) OVER (PARTITION BY run_id, rank ORDER BY raw_ns), raw_ns) - raw_ns AS duration_ns
  FROM change
  GROUP BY run_id, rank, raw_ns
)
SELECT run_id, rank, SUM(length * duration_ns) / NULLIF(SUM(duration_ns), 0) AS mean_length, MAX(length) AS longest,
  COALESCE(SUM(duration_ns) FILTER (WHERE length = 0), 0) / NULLIF(SUM(duration_ns), 0) AS empty_share
FROM moment
GROUP BY run_id, rank
ORDER BY run_id, rank
