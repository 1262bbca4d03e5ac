-- What set the run's length: the critical path by rank and cause. Shares of a run add up to 1.
-- Scope: run
CREATE OR REPLACE VIEW graph.critical_path_share (
  -- Joins meta.run.run_id.
  run_id,
  -- Rank on which the time lies.
  rank,
  -- Cause, as in graph.critical_path_part.
  cause,
  -- Time on the path, ns.
  duration_ns,
  -- Share of the path, 0..1.
  share
) AS
SELECT
  c.run_id,
  c.rank,
  p.cause,
  CAST(SUM(p.duration_ns) AS BIGINT) AS duration_ns,
  SUM(p.duration_ns) / SUM(SUM(p.duration_ns)) OVER (PARTITION BY c.run_id) AS share
FROM graph.critical_path AS c
JOIN graph.critical_path_part AS p USING (run_id, piece)
GROUP BY c.run_id, c.rank, p.cause
ORDER BY c.run_id, SUM(p.duration_ns) DESC, c.rank, p.cause
