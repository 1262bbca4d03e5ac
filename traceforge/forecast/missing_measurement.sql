-- What must be measured before a scaling curve can be drawn, or to make it surer; runs that were left out of it.
-- Scope: run
-- Reads: forecast.point, forecast.outlook, replay.calibration, meta.run, align.rank
CREATE OR REPLACE TABLE forecast.missing_measurement (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- What is missing.
  item VARCHAR NOT NULL,
  -- Why it is needed.
  why VARCHAR NOT NULL
)
