-- Throughput by number of ranks. With runs at one scale only, the measured point and nothing else: see forecast.need.
CREATE OR REPLACE TABLE forecast.scale (
  -- Joins meta.run.run_id.
  run_id,
  -- What the value comes from: measured.
  model,
  -- Number of ranks.
  ranks,
  -- Iterations a second.
  value,
  -- Lower end of its 95 % interval (normal, over steps); NULL below three steps.
  low,
  -- Upper end of its 95 % interval; NULL below three steps.
  high,
  -- True beyond the measured scales.
  extrapolated
) AS
WITH step AS (
  -- From one completion to the next; where an iteration between two was left out, that time is no step.
  SELECT
    i.run_id,
    CASE
      WHEN LAG(i.iteration) OVER run = i.iteration - 1
        THEN i.start_ns + i.duration_ns - LAG(i.start_ns + i.duration_ns) OVER run
    END AS step_ns
  FROM timeline.iteration AS i
  WHERE NOT i.is_partial AND NOT i.is_warmup
  WINDOW run AS (PARTITION BY i.run_id ORDER BY i.iteration)
),
pace AS (
  SELECT run_id, AVG(step_ns) AS mean_ns, 1.96 * STDDEV_SAMP(step_ns) / SQRT(COUNT(step_ns)) AS error_ns,
    COUNT(step_ns) AS steps
  FROM step
  GROUP BY run_id
  HAVING AVG(step_ns) > 0
)
SELECT
  p.run_id,
  'measured',
  COALESCE(r.world_size, (SELECT COUNT(*) FROM align.rank AS k WHERE k.run_id = p.run_id)),
  1e9 / p.mean_ns,
  CASE WHEN p.steps >= 3 THEN 1e9 / (p.mean_ns + p.error_ns) END,
  CASE WHEN p.steps >= 3 AND p.error_ns < p.mean_ns THEN 1e9 / (p.mean_ns - p.error_ns) END,
  false
FROM pace AS p
JOIN meta.run AS r USING (run_id)
ORDER BY p.run_id
