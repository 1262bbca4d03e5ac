-- Which rack each host stands in, where the user states it (`--racks`, `--rack-pattern`): one row such a host.
-- Scope: run
-- Reads: align.rank, meta.stated_rack, meta.rack_pattern
CREATE OR REPLACE TABLE align.rack (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins align.rank.host.
  host VARCHAR NOT NULL,
  -- Name of the rack.
  rack VARCHAR NOT NULL
)
