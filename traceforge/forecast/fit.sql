-- Every model that was fitted, how well it predicted the largest scale from the others, what it weighs, and where one
-- more rank stops paying by it; the row `ensemble` is their weighted mean.
-- Scope: run
-- Reads: forecast.point, forecast.outlook, replay.calibration
CREATE OR REPLACE TABLE forecast.fit (
  -- Joins meta.run.run_id: the run whose curve it is.
  run_id INTEGER NOT NULL,
  -- Name of a model, such as amdahl, usl, power_law or structural, or ensemble.
  model VARCHAR NOT NULL,
  -- Its parameters, as name=value.
  parameters VARCHAR NOT NULL,
  -- Root mean square of the log residuals at the measured scales.
  misfit DOUBLE NOT NULL,
  -- Predicted over measured throughput of the largest scale, from the others that use the same links (within a host,
  -- or between hosts), less 1; NULL where those are too few.
  backtest DOUBLE,
  -- Its part of the ensemble's value, 0..1.
  weight DOUBLE NOT NULL,
  -- Whether it is part of the band: its error in a doubling of the ranks, without waiting, is within twice the best; or without one.
  is_used BOOLEAN NOT NULL,
  -- Number of ranks, from the smallest measured scale on, from which one more adds less than 70 % of the throughput
  -- per rank there; NULL where
  -- that lies more than four times beyond the largest.
  knee_70 INTEGER,
  -- The same for 50 %.
  knee_50 INTEGER,
  -- Number of ranks from which throughput no longer rises, likewise.
  peak INTEGER
)
