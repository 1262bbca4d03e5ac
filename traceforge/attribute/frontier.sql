-- Who has most work, by durations alone: needs no common clock, and does not separate cause from coincidence.
--
-- For runs whose clocks cannot be aligned. A stage is a rank's own time between two of its collectives; the frontier is
-- the greatest sum of own times up to a stage over ranks. Its increments add up to the last frontier, exactly. Waiting
-- inside collectives is left out, transfers too. Iterations whose ranks issue different numbers of collectives are absent.
-- Scope: run
CREATE OR REPLACE TABLE attribute.frontier (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number.
  iteration,
  -- Number of the stage within the iteration, from 0: the time before the collective of that number.
  stage,
  -- Rank whose own times up to this stage add up to the most; the lowest of several.
  rank,
  -- By how much the frontier grows in this stage, ns.
  increment_ns,
  -- By how much it lies above the median rank, ns.
  lead_ns
) AS
WITH placed AS (
  SELECT
    c.run_id, c.rank, s.iteration, s.raw_start_ns, c.raw_arrival_ns, c.raw_end_ns,
    ROW_NUMBER() OVER calls - 1 AS stage,
    MAX(c.raw_end_ns) OVER (calls ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS raw_free_ns
  FROM align.call AS c
  ASOF JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
  WHERE c.raw_issue_ns < s.raw_end_ns
  WINDOW calls AS (PARTITION BY c.run_id, c.rank, s.iteration ORDER BY c.raw_arrival_ns, c.call_id)
),
reached AS (
  SELECT
    run_id, rank, iteration, stage,
    CAST(SUM(GREATEST(0, raw_arrival_ns - GREATEST(raw_start_ns, COALESCE(raw_free_ns, raw_start_ns)))) OVER so_far
      AS BIGINT) AS reached_ns,
    MAX(stage) OVER (PARTITION BY run_id, rank, iteration) AS last_stage
  FROM placed
  WINDOW so_far AS (PARTITION BY run_id, rank, iteration ORDER BY stage)
),
present AS (
  SELECT run_id, COUNT(*) AS ranks FROM align.rank GROUP BY ALL
),
regular AS (
  SELECT r.run_id, r.iteration
  FROM reached AS r
  JOIN present AS p USING (run_id)
  GROUP BY r.run_id, r.iteration, p.ranks
  HAVING MIN(r.last_stage) = MAX(r.last_stage) AND COUNT(DISTINCT r.rank) = p.ranks
),
frontier AS (
  SELECT
    run_id, iteration, stage,
    ARG_MAX(rank, (reached_ns, -rank)) AS rank,
    MAX(reached_ns) AS frontier_ns,
    MAX(reached_ns) - CAST(QUANTILE_DISC(reached_ns, 0.5) AS BIGINT) AS lead_ns
  FROM reached
  SEMI JOIN regular USING (run_id, iteration)
  GROUP BY ALL
)
SELECT
  run_id, iteration, stage, rank,
  frontier_ns - COALESCE(LAG(frontier_ns) OVER (PARTITION BY run_id, iteration ORDER BY stage), 0),
  lead_ns
FROM frontier
ORDER BY run_id, iteration, stage
