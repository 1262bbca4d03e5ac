-- For how long some device lacks work in each iteration, of runs in attribute.host_pace: hosts hold a job up no longer.
--
-- Of each iteration it is the rank whose device lacks work for longest: where hosts hold the job up, the others wait for it.
-- Scope: run
CREATE OR REPLACE TABLE attribute.starvation (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number; those of warm-up, and those that are not whole, are absent.
  iteration,
  -- Time in which neither a kernel nor a copy runs on that device (phases input, runtime and idle), ns.
  starved_ns
) AS
WITH of_rank AS (
  SELECT
    p.run_id, p.iteration, p.rank,
    COALESCE(SUM(p.duration_ns) FILTER (WHERE p.phase IN ('input', 'runtime', 'idle')), 0) AS starved_ns
  FROM timeline.phase AS p
  JOIN timeline.iteration AS i USING (run_id, iteration)
  WHERE p.run_id IN (SELECT run_id FROM attribute.host_pace) AND NOT i.is_warmup AND NOT i.is_partial
  GROUP BY ALL
)
SELECT run_id, iteration, CAST(MAX(starved_ns) AS BIGINT)
FROM of_rank
GROUP BY run_id, iteration
ORDER BY run_id, iteration
