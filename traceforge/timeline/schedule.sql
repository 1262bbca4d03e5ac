-- How a pipeline works through its micro-batches: one row an iteration of a run with stages.
--
-- Inferred from the order of turns (timeline.microbatch), and from messages alone where turns are unknown: between neighbours
-- go as many forwards as there are micro-batches and chunks, from the last stage to the first those of all chunks but one.
-- Iterations whose pairs of ranks do not agree are absent. From messages alone, of two stages chunks are unknown (they
-- pass for more micro-batches), and a backward pass that is split looks whole.
-- Scope: iteration
CREATE OR REPLACE TABLE timeline.schedule (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number.
  iteration,
  -- gpipe (all forward passes, then all backward ones), 1f1b (they alternate), interleaved (so do those of several chunks a
  -- stage), breadth_first (chunk after chunk forward, then backward), zb_h1 (1f1b whose backward passes are split in input
  -- and weight parts), zb_h2 (the same with more micro-batches in flight), interleaved_zb (interleaved and split), zb_v (two
  -- chunks a stage on a way forth and back, split), dualpipe_v (the same, of which some are not split), or unknown.
  schedule,
  -- Number of stages.
  stages,
  -- Micro-batches of the iteration.
  microbatches,
  -- Virtual stages of a rank.
  chunks,
  -- Share of a step of equal stages and free messages in which such a schedule leaves a rank idle, 0..1: of p stages, m
  -- micro-batches and v chunks (p - 1) / (v m + p - 1); of zb_h1 with passes of f, b and w
  -- (p - 1) (f + b - w) / (m (f + b + w) + (p - 1) (f + b - w)); NULL of other schedules.
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
),
by_messages AS (
  SELECT
    d.run_id, d.iteration,
    CASE
      WHEN d.chunks > 1 THEN 'interleaved'
      WHEN b.asked = d.microbatches AND d.microbatches > 2 THEN 'gpipe'
      WHEN b.asked <= 2 THEN '1f1b'
      ELSE 'unknown'
    END AS schedule,
    d.stages, d.microbatches, d.chunks,
    (d.stages - 1) / (d.chunks * d.microbatches + d.stages - 1) AS ideal_bubble_share
  FROM divided AS d
  LEFT JOIN before AS b USING (run_id, iteration)
),
-- Of each rank, when its backward passes begin.
turned AS (
  SELECT run_id, iteration, rank, MIN(turn) FILTER (direction IN ('backward', 'backward_input')) AS backward_turn
  FROM timeline.microbatch
  GROUP BY run_id, iteration, rank
),
of_rank AS (
  SELECT
    m.run_id, m.iteration, m.rank, s.coordinate AS stage, s.stages,
    COUNT(*) FILTER (m.direction = 'forward') AS forwards,
    -- How many micro-batches are in flight when the first of them turns back.
    COUNT(*) FILTER (m.direction = 'forward' AND m.turn < t.backward_turn) AS in_flight,
    COUNT(*) FILTER (m.direction = 'backward') AS whole,
    COUNT(*) FILTER (m.direction = 'backward_weight') AS split,
    1 + MAX(m.microbatch) AS microbatches, 1 + MAX(m.chunk) AS chunks,
    AVG(m.duration_ns) FILTER (m.direction = 'forward') AS forward_ns,
    AVG(m.duration_ns) FILTER (m.direction = 'backward_input') AS input_ns,
    AVG(m.duration_ns) FILTER (m.direction = 'backward_weight') AS weight_ns,
    MIN(m.start_ns) FILTER (m.direction = 'forward' AND m.chunk = 1) AS second_chunk_ns
  FROM timeline.microbatch AS m
  JOIN stage AS s USING (run_id, rank)
  JOIN turned AS t USING (run_id, iteration, rank)
  GROUP BY m.run_id, m.iteration, m.rank, s.coordinate, s.stages
),
ordered AS (
  SELECT
    run_id, iteration, ANY_VALUE(stages) AS stages, MAX(microbatches) AS microbatches, MAX(chunks) AS chunks,
    BOOL_AND(in_flight = forwards) AS is_forward_first,
    MAX(in_flight) FILTER (stage = stages - 1) AS last_in_flight,
    BOOL_AND(in_flight <= stages - stage) AS is_lean,
    SUM(split) > 0 AS is_split, SUM(whole) > 0 AS has_whole,
    -- On a way forth and back a micro-batch turns round on the last stage.
    ARG_MIN(stage, second_chunk_ns) = stages - 1 AND MAX(chunks) = 2 AS is_v_shaped,
    AVG(forward_ns) + AVG(input_ns) - AVG(weight_ns) AS alone_ns,
    AVG(forward_ns) + AVG(input_ns) + AVG(weight_ns) AS pass_ns
  FROM of_rank
  GROUP BY run_id, iteration, stages
  -- Every stage must be known.
  HAVING COUNT(DISTINCT stage) = stages
),
by_turns AS (
  SELECT
    run_id, iteration,
    CASE
      WHEN is_split AND is_v_shaped THEN IF(has_whole, 'dualpipe_v', 'zb_v')
      WHEN is_v_shaped OR microbatches = 1 THEN 'unknown'
      WHEN is_split AND chunks > 1 THEN 'interleaved_zb'
      WHEN is_split THEN IF(is_lean, 'zb_h1', 'zb_h2')
      WHEN is_forward_first THEN IF(chunks > 1, 'breadth_first', 'gpipe')
      WHEN chunks > 1 THEN 'interleaved'
      WHEN last_in_flight <= 2 THEN '1f1b'
      ELSE 'unknown'
    END AS schedule,
    stages, microbatches, chunks, alone_ns, pass_ns
  FROM ordered
)
SELECT
  run_id, iteration,
  COALESCE(t.schedule, m.schedule), COALESCE(t.stages, m.stages), COALESCE(t.microbatches, m.microbatches),
  COALESCE(t.chunks, m.chunks),
  CASE
    WHEN t.schedule IS NULL THEN m.ideal_bubble_share
    WHEN t.schedule IN ('gpipe', '1f1b', 'interleaved', 'breadth_first')
      THEN (t.stages - 1) / (t.chunks * t.microbatches + t.stages - 1)
    WHEN t.schedule = 'zb_h1'
      THEN (t.stages - 1) * t.alone_ns / (t.microbatches * t.pass_ns + (t.stages - 1) * t.alone_ns)
  END
FROM by_messages AS m
FULL JOIN by_turns AS t USING (run_id, iteration)
ORDER BY run_id, iteration
