-- Why devices had nothing to do: one row a rank and cause, over all iterations.
-- Scope: rank
CREATE OR REPLACE VIEW timeline.gap_cause (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Cause, as in timeline.gap.
  cause,
  -- Number of gaps.
  gaps,
  -- Their time, ns.
  total_gap_ns,
  -- The longest of them, ns.
  longest_gap_ns,
  -- Their share of the rank's iterations, 0..1.
  share
) AS
WITH spent AS (
  SELECT run_id, rank, SUM(duration_ns) AS duration_ns FROM timeline.rank_iteration GROUP BY ALL
)
SELECT
  g.run_id,
  g.rank,
  g.cause,
  COUNT(*) AS gaps,
  CAST(SUM(g.duration_ns) AS BIGINT) AS total_gap_ns,
  MAX(g.duration_ns) AS longest_gap_ns,
  SUM(g.duration_ns) / ANY_VALUE(s.duration_ns) AS share
FROM timeline.gap AS g
JOIN spent AS s USING (run_id, rank)
GROUP BY g.run_id, g.rank, g.cause
ORDER BY g.run_id, SUM(g.duration_ns) DESC, g.rank, g.cause
