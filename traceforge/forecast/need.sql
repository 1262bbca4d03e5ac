-- What must be measured before a scaling curve can be drawn.
CREATE OR REPLACE TABLE forecast.need (
  -- Joins meta.run.run_id.
  run_id,
  -- What is missing.
  item,
  -- Why it is needed.
  why
) AS
WITH scale AS (
  SELECT r.run_id, COALESCE(r.world_size, (SELECT COUNT(*) FROM align.rank AS k WHERE k.run_id = r.run_id)) AS ranks
  FROM meta.run AS r
),
judged AS (
  SELECT run_id, COUNT(*) AS iterations FROM timeline.iteration WHERE NOT is_warmup AND NOT is_partial GROUP BY ALL
)
SELECT s.run_id,
  CASE s.ranks
    WHEN 0 THEN 'The same job at three or more scales'
    WHEN 1 THEN 'The same job at two or more other scales than one rank'
    ELSE FORMAT('The same job at two or more other scales than {} ranks', s.ranks)
  END AS item,
  'One scale is one point: any curve through it would be invented. Fits on few scales miss by 5 to 20 % when they extrapolate to twice the size, so three or more scales are wanted.' AS why
FROM scale AS s
UNION ALL
SELECT s.run_id, 'Batch size per rank, element type, algorithm and NCCL version of each run',
  'Runs that differ in these are not points of one curve.'
FROM scale AS s
UNION ALL
SELECT s.run_id, 'At least 10 judged iterations per run',
  FORMAT('This run has {}; the slowest rank of many is set by rare delays, which few iterations do not show.',
    COALESCE(j.iterations, 0))
FROM scale AS s
LEFT JOIN judged AS j USING (run_id)
WHERE COALESCE(j.iterations, 0) < 10
ORDER BY run_id, item
