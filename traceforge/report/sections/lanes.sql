-- Phases of the shown ranks in the shown iterations, as consecutive intervals: of neighbours, the latest to arrive.
WITH recorded AS (
  SELECT
    own.iteration,
    own.rank,
    own.start_ns,
    (DENSE_RANK() OVER (ORDER BY own.rank) - 1) // $ranks_per_row AS place
  FROM timeline.rank_iteration AS own
  WHERE own.run_id = $run_id
    AND own.iteration IN ($iterations)
),
lateness AS (
  SELECT iteration, rank, AVG(late_ns) AS late_ns
  FROM timeline.arrival
  WHERE run_id = $run_id
    AND iteration IN ($iterations)
  GROUP BY iteration, rank
),
shown AS (
  SELECT recorded.iteration, recorded.rank
  FROM recorded
  LEFT JOIN lateness
    ON lateness.iteration = recorded.iteration
    AND lateness.rank = recorded.rank
  QUALIFY ROW_NUMBER() OVER (
    PARTITION BY recorded.iteration, recorded.place
    ORDER BY lateness.late_ns DESC NULLS LAST, recorded.rank
  ) = 1
)
SELECT
  segment.iteration,
  segment.rank,
  segment.phase,
  segment.start_ns - iteration.start_ns AS start_ns,
  segment.start_ns - iteration.start_ns + segment.duration_ns AS end_ns
FROM timeline.segment AS segment
JOIN shown
  ON shown.iteration = segment.iteration
  AND shown.rank = segment.rank
JOIN timeline.iteration AS iteration
  ON iteration.run_id = segment.run_id
  AND iteration.iteration = segment.iteration
WHERE segment.run_id = $run_id
  AND segment.duration_ns > 0
ORDER BY segment.iteration, segment.rank, segment.start_ns
