-- Restarts seen across runs of one job: a run that goes on from within the iterations of an earlier one.
--
-- Two runs are taken for one job where they lie on one curve at one scale, the later starts after the earlier has
-- ended, and its first iteration is one that the earlier recorded too, but not the first of it. Clocks must count from
-- the epoch. Profilers record windows, so that this is what is seen at least, not all that was repeated.
CREATE OR REPLACE TABLE forecast.restart (
  -- Joins meta.run.run_id: the later run.
  run_id,
  -- Joins meta.run.run_id: the run that it goes on from.
  earlier_run_id,
  -- Iterations that both recorded: repeated work.
  repeated_iterations,
  -- The same in time at the earlier run's pace, ns.
  repeated_ns,
  -- From the last iteration of the earlier run to the first of the later, ns.
  gap_ns
) AS
WITH epoch AS (
  SELECT 1000000000000000000 AS earliest_ns
),
recorded AS (
  SELECT i.run_id, MIN(i.iteration) AS first_iteration, MAX(i.iteration) AS last_iteration,
    MIN(i.start_ns) AS start_ns, MAX(i.start_ns + i.duration_ns) AS end_ns
  FROM timeline.iteration AS i
  GROUP BY i.run_id
)
SELECT
  m.run_id, m.member_run_id,
  earlier.last_iteration - later.first_iteration + 1,
  CAST((earlier.last_iteration - later.first_iteration + 1) * p.step_ns AS BIGINT),
  later.start_ns - earlier.end_ns
FROM forecast.member AS m
JOIN recorded AS later ON later.run_id = m.run_id
JOIN recorded AS earlier ON earlier.run_id = m.member_run_id
JOIN forecast.point AS p ON p.run_id = m.member_run_id
JOIN forecast.point AS own ON own.run_id = m.run_id AND own.ranks = p.ranks
CROSS JOIN epoch AS e
WHERE m.is_used AND m.run_id <> m.member_run_id
  AND earlier.start_ns >= e.earliest_ns AND later.start_ns >= earlier.end_ns
  AND later.first_iteration > earlier.first_iteration AND later.first_iteration <= earlier.last_iteration
ORDER BY m.run_id, m.member_run_id
