-- The parallel layout of a run in words, such as `pp 4 x dp 2 x tp 2`: one row a run whose groups form a mesh.
-- Scope: run
CREATE OR REPLACE VIEW timeline.layout (
  -- Joins meta.run.run_id.
  run_id,
  -- Axes with their sizes, the pipeline first.
  layout,
  -- Number of axes.
  axes
) AS
WITH axis AS (
  SELECT run_id, axis, MAX(coordinate) + 1 AS size FROM timeline.mesh GROUP BY run_id, axis
)
SELECT
  run_id,
  STRING_AGG(axis || ' ' || size, ' x ' ORDER BY LIST_POSITION(['pp', 'dp', 'fsdp', 'ep', 'cp', 'tp'], axis), axis)
    AS layout,
  COUNT(*) AS axes
FROM axis
GROUP BY run_id
ORDER BY run_id
