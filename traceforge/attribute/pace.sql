-- How long the judged iterations take, and how often one begins: one row a run with such iterations.
--
-- An iteration lasts from the first rank's start to the last rank's end. Where ranks begin the next one while others are
-- still in the last one, iterations overlap, and the job advances faster than their durations say.
-- Scope: run
CREATE OR REPLACE TABLE attribute.pace (
  -- Joins meta.run.run_id.
  run_id,
  -- Number of iterations judged.
  iterations,
  -- Their mean duration, ns.
  duration_ns,
  -- Mean time from the start of one to the start of the next one, ns; NULL where no two of them follow one another.
  every_ns,
  -- Their mean time above the reference, ns.
  excess_ns,
  -- What an iteration takes of the job's time, ns: every_ns where they overlap, else duration_ns. Shares of
  -- attribute.finding are of this.
  pace_ns
) AS
WITH judged AS (
  SELECT
    i.run_id,
    i.duration_ns,
    e.excess_ns,
    CASE WHEN LEAD(i.iteration) OVER in_order = i.iteration + 1
      THEN LEAD(i.start_ns) OVER in_order - i.start_ns END AS until_next_ns
  FROM attribute.excess AS e
  JOIN timeline.iteration AS i USING (run_id, iteration)
  WHERE NOT i.is_warmup
  WINDOW in_order AS (PARTITION BY i.run_id ORDER BY i.iteration)
),
measured AS (
  SELECT
    run_id,
    COUNT(*) AS iterations,
    CAST(ROUND(AVG(duration_ns)) AS BIGINT) AS duration_ns,
    CAST(ROUND(AVG(until_next_ns)) AS BIGINT) AS every_ns,
    CAST(ROUND(AVG(excess_ns)) AS BIGINT) AS excess_ns
  FROM judged
  GROUP BY run_id
)
SELECT
  m.run_id,
  m.iterations,
  m.duration_ns,
  m.every_ns,
  m.excess_ns,
  CASE WHEN m.every_ns > 0 AND m.every_ns < t.value * m.duration_ns THEN m.every_ns ELSE m.duration_ns END
FROM measured AS m
CROSS JOIN meta.threshold AS t
WHERE t.name = 'attribute.OVERLAPPING_SHARE'
ORDER BY m.run_id
