-- Every trace file of a run, and whether it is used: none is left out without a reason.
-- Scope: run
CREATE OR REPLACE TABLE align.file (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins meta.source.source_id.
  source_id,
  -- Path, as in meta.source.
  path,
  -- True for a profiler's recording of what ran when; false for logs, execution traces and dumps.
  is_timeline,
  -- True where answers rest on it.
  is_used,
  -- Why it is not used; NULL where it is.
  reason
) AS
SELECT
  s.run_id, s.source_id, s.path,
  p.source_id IS NOT NULL,
  d.source_id IS NOT NULL OR (s.status = 'used' AND (p.source_id IS NULL OR r.source_id IS NOT NULL)),
  CASE
    WHEN d.source_id IS NOT NULL THEN NULL
    WHEN s.status <> 'used' THEN 'it holds no event'
    WHEN p.source_id IS NULL OR r.source_id IS NOT NULL THEN NULL
    WHEN i.source_id IS NOT NULL AND i.raw_until_ns IS NULL THEN 'it is truncated before what the device did'
    WHEN s.rank IS NULL THEN 'nothing states its rank'
    ELSE 'another file is used for rank ' || s.rank
  END
FROM meta.source AS s
LEFT JOIN raw.profile AS p USING (source_id)
LEFT JOIN align.rank AS r USING (run_id, source_id)
LEFT JOIN align.intact AS i USING (source_id)
-- A dump in which no call waits still says how far its rank came.
LEFT JOIN (SELECT DISTINCT source_id FROM raw.flight_recorder_progress) AS d USING (source_id)
ORDER BY s.run_id, s.source_id
