-- The course of each rank's clock: one row a stretch of time over which it drifts evenly.
--
-- Aligned time = raw time - align.ahead_ns(raw time, row), with the row of the largest raw_from_ns that is no later. An unaligned rank has one row that changes nothing.
-- Scope: run
CREATE OR REPLACE TABLE align.clock_piece (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- From when on the row holds, ns on the rank's own clock; the first holds from the beginning.
  raw_from_ns,
  -- Reading of the rank's own clock to which offset_ns belongs, ns.
  raw_anchor_ns,
  -- Rank's clock minus the reference rank's clock then, ns.
  offset_ns,
  -- How much faster the rank's clock runs than the reference's, parts per billion.
  drift_ppb
) AS
WITH piece AS (
  SELECT run_id, rank, GENERATE_SUBSCRIPTS(course, 1) AS place, UNNEST(course) AS knot FROM align.clock
)
SELECT run_id, rank, CASE WHEN place = 1 THEN -9223372036854775807 ELSE knot.raw_ns END, knot.raw_ns, knot.ahead_ns,
  knot.ppb
FROM piece
ORDER BY run_id, rank, place
