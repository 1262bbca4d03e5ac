-- One row a training step of one rank, as the profiler's step annotation on the host marks it.
--
-- The copy of the annotation on the device is not counted. A rank without any annotation has one step, number 0,
-- that spans its whole trace.
-- Reads: align.rank
CREATE OR REPLACE TABLE align.step (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Number in ProfilerStep#N.
  iteration,
  -- Start, ns on the rank's own clock.
  raw_start_ns,
  -- End, ns on the rank's own clock.
  raw_end_ns,
  -- False where the trace marks no steps and the whole window stands in.
  is_marked
) AS
WITH marked AS (
  SELECT r.run_id, r.rank, CAST(REGEXP_EXTRACT(e.name, '(\d+)', 1) AS INTEGER) AS iteration,
    MIN(e.raw_start_ns) AS raw_start_ns, ARG_MIN(e.raw_start_ns + e.duration_ns, e.raw_start_ns) AS raw_end_ns
  FROM align.rank AS r
  JOIN raw.kineto_event AS e USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE c.class = 'iteration' AND e.phase = 'X' AND e.duration_ns > 0
  GROUP BY ALL
)
SELECT run_id, rank, iteration, raw_start_ns, raw_end_ns, true
FROM marked
UNION ALL
SELECT run_id, rank, 0, raw_first_ns, raw_last_ns, false
FROM align.rank
WHERE raw_first_ns < raw_last_ns
  AND (run_id, rank) NOT IN (SELECT (run_id, rank) FROM marked)
ORDER BY 1, 2, 3
