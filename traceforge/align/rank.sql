-- The file used for each rank: one row a rank of a run. Files left out are counted in meta.issue.
-- Scope: run
-- Reads: meta.source, raw.event_kind, raw.profile, align.extent, align.intact, align.stated_host
CREATE OR REPLACE TABLE align.rank (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank, from 0.
  rank INTEGER NOT NULL,
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Host name, as the timeline states it, else as other files do (see align.stated_host); NULL when unknown.
  host VARCHAR,
  -- Earliest time stamp of the file's timed events, ns on the rank's own clock.
  raw_first_ns BIGINT,
  -- Latest end of the file's timed events, ns on the rank's own clock.
  raw_last_ns BIGINT,
  -- True where the file holds device kernels; false where only host threads were recorded.
  has_device BOOLEAN NOT NULL,
  -- Nothing that begins before is missing, ns on the rank's own clock (see align.intact); NULL where the file is whole.
  raw_intact_ns BIGINT
)
