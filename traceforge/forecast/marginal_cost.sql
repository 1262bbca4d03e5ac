-- Where the time of one more rank goes: shares that add up to 1, at each measured scale but the smallest and at twice
-- and four times the largest.
-- Scope: run
-- Reads: forecast.point, forecast.outlook, replay.calibration
CREATE OR REPLACE TABLE forecast.marginal_cost (
  -- Joins meta.run.run_id: the run whose curve it is.
  run_id INTEGER NOT NULL,
  -- Number of ranks that one is added to.
  ranks INTEGER NOT NULL,
  -- useful, or what takes the rest: exposed_communication, straggling, contention, work, failures (as in
  -- forecast.scale), and serial, coherency or growing where a model without terms weighs most.
  part VARCHAR NOT NULL,
  -- Share of the added rank's time; negative where a part shrinks.
  share DOUBLE NOT NULL,
  -- Whether one more rank helps, harms, or cannot_be_told because models of the band differ.
  one_more_rank VARCHAR NOT NULL
)
