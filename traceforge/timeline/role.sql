-- With whom a rank may be compared: one row a rank. Ranks of one stage do the same work, in whatever replica they are.
-- Scope: run
CREATE OR REPLACE TABLE timeline.role (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Number that the ranks of a role share: the stage of the pipeline, 0 without one. Ranks along all other axes do the
  -- same work by design.
  role,
  -- Stage of the pipeline, from 0; NULL without one.
  stage
) AS
SELECT r.run_id, r.rank, COALESCE(m.coordinate, 0), m.coordinate
FROM align.rank AS r
LEFT JOIN timeline.mesh AS m ON m.run_id = r.run_id AND m.rank = r.rank AND m.axis = 'pp'
ORDER BY r.run_id, r.rank
