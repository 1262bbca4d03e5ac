-- Lateness against the median rank of the iteration, the largest in each cell of neighbouring ranks and iterations.
WITH used AS (
  SELECT
    iteration,
    DENSE_RANK() OVER (ORDER BY iteration) - 1 AS place
  FROM timeline.iteration
  WHERE run_id = $run_id
    AND NOT is_warmup
    AND NOT is_partial
),
mean_lateness AS (
  SELECT
    iteration,
    rank,
    AVG(late_ns) AS late_ns
  FROM timeline.arrival
  WHERE run_id = $run_id
  GROUP BY iteration, rank
),
placed AS (
  SELECT
    used.iteration,
    used.place AS iteration_place,
    mean_lateness.rank,
    DENSE_RANK() OVER (ORDER BY mean_lateness.rank) - 1 AS rank_place,
    mean_lateness.late_ns - MEDIAN(mean_lateness.late_ns) OVER (PARTITION BY used.iteration) AS lateness_ns
  FROM used
  JOIN mean_lateness
    ON mean_lateness.iteration = used.iteration
)
SELECT
  iteration_place // $iterations_per_cell AS iteration_cell,
  rank_place // $ranks_per_cell AS rank_cell,
  MIN(iteration) AS first_iteration,
  MAX(iteration) AS last_iteration,
  MIN(rank) AS first_rank,
  MAX(rank) AS last_rank,
  MAX(lateness_ns) AS lateness_ns
FROM placed
GROUP BY iteration_cell, rank_cell
ORDER BY iteration_cell, rank_cell
