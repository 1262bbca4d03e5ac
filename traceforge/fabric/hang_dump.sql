-- The flight recorder dump used for each rank: one row a rank. Dumps left out are counted in meta.issue.
-- Scope: run
-- Reads: fabric.stated_members, meta.source, raw.flight_recorder_entry, raw.flight_recorder_group
CREATE OR REPLACE TABLE fabric.hang_dump (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank, from 0.
  rank INTEGER NOT NULL,
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL
)
