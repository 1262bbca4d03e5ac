-- Device work without a time: one row an iteration of a rank whose trace has some.
--
-- When it ran is not known, so that its device seems idle meanwhile; its launch tells which iteration lacks it. Where it
-- is the launch that has none, the host seems idle.
-- Scope: rank
CREATE OR REPLACE TABLE timeline.untimed_work (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Iteration number.
  iteration,
  -- Kernels, copies and fills that were launched in it.
  events,
  -- Of these, those without a time, or launched by a call without one.
  untimed
) AS
WITH affected AS (
  SELECT r.run_id, r.rank, r.source_id
  FROM align.rank AS r
  SEMI JOIN (
    SELECT source_id FROM meta.issue WHERE code IN ('kineto_stray_time', 'kineto_event_without_timestamp')
  ) AS i USING (source_id)
),
event AS (
  SELECT a.run_id, a.rank, o.correlation, o.raw_start_ns,
    k.category IN ('kernel', 'gpu_memcpy', 'gpu_memset') AS is_device
  FROM affected AS a
  JOIN raw.event_kind AS k USING (source_id)
  JOIN raw.occurrence AS o USING (source_id, kind_id)
  WHERE k.phase = 'X' AND k.category IN ('kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_runtime', 'cuda_driver')
    AND o.correlation IS NOT NULL
),
launch AS (
  SELECT run_id, rank, correlation, MIN(raw_start_ns) AS raw_start_ns
  FROM event
  WHERE NOT is_device
  GROUP BY ALL
),
work AS (
  SELECT e.run_id, e.rank, COALESCE(l.raw_start_ns, e.raw_start_ns) AS raw_place_ns,
    e.raw_start_ns IS NULL OR l.raw_start_ns IS NULL AS is_untimed
  FROM event AS e
  JOIN launch AS l USING (run_id, rank, correlation)
  WHERE e.is_device AND COALESCE(l.raw_start_ns, e.raw_start_ns) IS NOT NULL
)
SELECT
  s.run_id, s.rank, s.iteration, COUNT(*), COUNT(*) FILTER (WHERE w.is_untimed)
FROM work AS w
ASOF JOIN align.step AS s ON s.run_id = w.run_id AND s.rank = w.rank AND w.raw_place_ns >= s.raw_start_ns
WHERE w.raw_place_ns < s.raw_end_ns
GROUP BY ALL
HAVING COUNT(*) FILTER (WHERE w.is_untimed) > 0
ORDER BY s.run_id, s.rank, s.iteration
