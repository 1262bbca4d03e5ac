-- How much each stage of a pipeline computes: one row a stage of a run with stages, mean over its ranks and whole iterations.
--
-- A stage that computes longer than the others is what the others wait for. Whether it has more work by design (an
-- embedding, a head, layers that do not divide) or is slow, one run cannot tell.
-- Scope: run
CREATE OR REPLACE TABLE timeline.stage_load (
  -- Joins meta.run.run_id.
  run_id,
  -- Stage, from 0.
  stage,
  -- Its ranks, ascending.
  ranks,
  -- Time in which its devices compute, mean over ranks and iterations, ns.
  compute_ns_per_iteration,
  -- That of the mean stage, ns.
  mean_stage_ns_per_iteration,
  -- By how much it exceeds the mean stage, as a share of that; negative where it computes less.
  excess_share,
  -- Whether it is the longest, or computes longer than the middle one (the lower of two) by as much as counts
  -- (timeline.LONGER_STAGE_SHARE).
  is_longer,
  -- Compute of the mean of the stages that are not longer, ns.
  usual_stage_ns_per_iteration
) AS
WITH computed AS (
  SELECT p.run_id, r.stage, p.rank, p.iteration, p.duration_ns
  FROM timeline.phase AS p
  JOIN timeline.role AS r ON r.run_id = p.run_id AND r.rank = p.rank
  JOIN timeline.iteration AS i ON i.run_id = p.run_id AND i.iteration = p.iteration
  WHERE p.phase = 'compute' AND r.stage IS NOT NULL AND NOT i.is_warmup AND NOT i.is_partial
),
stage AS (
  SELECT run_id, stage, LIST_SORT(LIST(DISTINCT rank)) AS ranks, AVG(duration_ns) AS compute_ns
  FROM computed
  GROUP BY run_id, stage
),
judged AS (
  SELECT s.run_id, s.stage, s.ranks, s.compute_ns,
    ROW_NUMBER() OVER (PARTITION BY s.run_id ORDER BY CAST(ROUND(s.compute_ns) AS BIGINT) DESC, s.stage) = 1
      OR s.compute_ns >= (1 + t.value) * QUANTILE_DISC(s.compute_ns, 0.5) OVER (PARTITION BY s.run_id) AS is_longer
  FROM stage AS s
  JOIN meta.threshold AS t ON t.name = 'timeline.LONGER_STAGE_SHARE'
  QUALIFY COUNT(*) OVER (PARTITION BY s.run_id) > 1
)
SELECT
  run_id, stage, ranks, CAST(ROUND(compute_ns) AS BIGINT),
  CAST(ROUND(AVG(compute_ns) OVER (PARTITION BY run_id)) AS BIGINT),
  compute_ns / NULLIF(AVG(compute_ns) OVER (PARTITION BY run_id), 0) - 1,
  is_longer,
  CAST(ROUND(AVG(compute_ns) FILTER (NOT is_longer) OVER (PARTITION BY run_id)) AS BIGINT)
FROM judged
ORDER BY run_id, stage
