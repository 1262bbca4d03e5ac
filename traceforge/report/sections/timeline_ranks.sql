-- Every rank in the shown iterations: when it arrives, and how long it waits, computes and transfers.
WITH arrived AS (
  SELECT
    iteration,
    rank,
    AVG(late_ns) AS late_ns
  FROM timeline.arrival
  WHERE run_id = $run_id
    AND iteration IN ($iterations)
  GROUP BY iteration, rank
),
spent AS (
  SELECT
    iteration,
    rank,
    CAST(COALESCE(SUM(duration_ns) FILTER (phase = 'wait'), 0) AS BIGINT) AS wait_ns,
    CAST(COALESCE(SUM(duration_ns) FILTER (phase = 'compute'), 0) AS BIGINT) AS compute_ns,
    CAST(COALESCE(SUM(duration_ns) FILTER (phase = 'transfer'), 0) AS BIGINT) AS transfer_ns,
    CAST(COALESCE(SUM(duration_ns) FILTER (phase = 'communication'), 0) AS BIGINT) AS communication_ns
  FROM timeline.segment
  WHERE run_id = $run_id
    AND iteration IN ($iterations)
  GROUP BY iteration, rank
)
SELECT
  spent.iteration,
  spent.rank,
  arrived.late_ns,
  arrived.late_ns - MEDIAN(arrived.late_ns) OVER own_iteration AS behind_median_ns,
  spent.wait_ns,
  (SUM(spent.wait_ns) OVER own_iteration - spent.wait_ns)
    / NULLIF(COUNT(*) OVER own_iteration - 1, 0) AS others_wait_ns,
  spent.compute_ns,
  spent.transfer_ns,
  spent.communication_ns
FROM spent
LEFT JOIN arrived
  ON arrived.iteration = spent.iteration
  AND arrived.rank = spent.rank
WINDOW own_iteration AS (PARTITION BY spent.iteration)
ORDER BY spent.iteration, arrived.late_ns DESC NULLS LAST, spent.wait_ns, spent.rank
