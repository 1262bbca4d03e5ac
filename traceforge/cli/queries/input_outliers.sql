-- Iterations in which a rank waited for its input more than twice as long as it does at the median.
WITH spent AS (
  SELECT r.run_id, r.iteration, r.rank, COALESCE(p.duration_ns, 0) AS input_ns
  FROM timeline.rank_iteration AS r
  LEFT JOIN timeline.phase AS p
    ON p.run_id = r.run_id AND p.iteration = r.iteration AND p.rank = r.rank AND p.phase = 'input'
),
usual AS (
  SELECT *, MEDIAN(input_ns) OVER (PARTITION BY run_id, rank) AS median_ns
  FROM spent
)
SELECT run_id, iteration, rank, input_ns / 1e6 AS input_ms, median_ns / 1e6 AS median_ms,
  (input_ns - median_ns) / 1e6 AS above_median_ms
FROM usual
WHERE input_ns > 2 * median_ns AND input_ns > 100000
QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY above_median_ms DESC, iteration, rank) <= 50
ORDER BY above_median_ms DESC, run_id, iteration, rank
