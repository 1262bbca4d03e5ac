-- How a pipeline works through its micro-batches: one row an iteration of a run with stages.
--
-- Told from messages alone: between neighbours go as many forwards as there are micro-batches and chunks, from the last
-- stage to the first those of all chunks but one. Iterations whose pairs of ranks do not agree are absent.
-- Of two stages chunks cannot be told: they pass for more micro-batches.
-- Scope: iteration
CREATE OR REPLACE TABLE timeline.schedule (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number.
  iteration,
  -- gpipe (the last stage receives all micro-batches before it sends a gradient), 1f1b (it alternates; a backward pass
  -- that is split, as in zero-bubble schedules, looks the same), interleaved (several chunks a stage), or NULL where the
  -- order tells none of these.
  schedule,
  -- Number of stages.
  stages,
  -- Micro-batches of the iteration.
  microbatches,
  -- Virtual stages of a rank.
  chunks,
  -- Share of a step of equal stages and free messages in which such a schedule leaves a rank idle, 0..1: (p - 1) / (v m + p - 1)
  -- of p stages, m micro-batches, v chunks. Schedules that split the backward pass idle less.
  ideal_bubble_share
) AS
WITH stage AS (
  SELECT run_id, rank, coordinate, 1 + MAX(coordinate) OVER (PARTITION BY run_id) AS stages
  FROM timeline.mesh
  WHERE axis = 'pp'
),
sent AS (
  SELECT m.run_id, m.iteration, s.stages, m.source_rank, m.destination_rank, m.destination_endpoint_id,
    m.source_endpoint_id,
    CASE
      WHEN d.coordinate = s.coordinate + 1 THEN 'forward'
      WHEN s.coordinate = s.stages - 1 AND d.coordinate = 0 AND s.stages > 2 THEN 'around'
      WHEN d.coordinate = s.coordinate - 1 THEN 'backward'
    END AS way,
    s.coordinate AS source_stage, d.coordinate AS destination_stage
  FROM (
    SELECT t.*, a.source_endpoint_id, a.destination_endpoint_id
    FROM timeline.message AS t
    JOIN align.message AS a USING (run_id, message_id)
    WHERE t.iteration IS NOT NULL
  ) AS m
  JOIN stage AS s ON s.run_id = m.run_id AND s.rank = m.source_rank
  JOIN stage AS d ON d.run_id = m.run_id AND d.rank = m.destination_rank
),
pairs AS (
  SELECT run_id, iteration, ANY_VALUE(stages) AS stages, way, source_rank, destination_rank, COUNT(*) AS messages
  FROM sent
  WHERE way IN ('forward', 'around')
  GROUP BY run_id, iteration, way, source_rank, destination_rank
),
counted AS (
  SELECT run_id, iteration, ANY_VALUE(stages) AS stages,
    MIN(messages) FILTER (way = 'forward') AS forwards, COALESCE(MIN(messages) FILTER (way = 'around'), 0) AS around
  FROM pairs
  GROUP BY run_id, iteration
  HAVING MIN(messages) FILTER (way = 'forward') = MAX(messages) FILTER (way = 'forward')
),
-- Of the last stage, how many forwards it has asked for before it sends its first gradient.
first_gradient AS (
  SELECT run_id, iteration, source_rank AS rank, MIN(source_endpoint_id) AS endpoint_id
  FROM sent
  WHERE way = 'backward' AND source_stage = stages - 1
  GROUP BY run_id, iteration, source_rank
),
before AS (
  SELECT s.run_id, s.iteration, MAX(s.asked) AS asked
  FROM (
    SELECT s.run_id, s.iteration, s.destination_rank, COUNT(*) AS asked
    FROM sent AS s
    JOIN first_gradient AS g
      ON g.run_id = s.run_id AND g.iteration = s.iteration AND g.rank = s.destination_rank
      AND s.destination_endpoint_id < g.endpoint_id
    WHERE s.way = 'forward' AND s.destination_stage = s.stages - 1
    GROUP BY s.run_id, s.iteration, s.destination_rank
  ) AS s
  GROUP BY s.run_id, s.iteration
),
divided AS (
  SELECT *, forwards - around AS microbatches, forwards // (forwards - around) AS chunks
  FROM counted
  WHERE forwards > around AND forwards % (forwards - around) = 0
)
SELECT
  d.run_id, d.iteration,
  CASE
    WHEN d.chunks > 1 THEN 'interleaved'
    WHEN b.asked = d.microbatches AND d.microbatches > 2 THEN 'gpipe'
    WHEN b.asked <= 2 THEN '1f1b'
  END,
  d.stages, d.microbatches, d.chunks,
  (d.stages - 1) / (d.chunks * d.microbatches + d.stages - 1)
FROM divided AS d
LEFT JOIN before AS b USING (run_id, iteration)
ORDER BY d.run_id, d.iteration
