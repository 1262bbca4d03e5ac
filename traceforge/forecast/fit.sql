-- Every model that was fitted, how well it told the largest scale from the others, and what it weighs.
-- Reads: forecast.point, replay.calibration
CREATE OR REPLACE TABLE forecast.fit (
  -- Joins meta.run.run_id: the run whose curve it is.
  run_id INTEGER NOT NULL,
  -- amdahl, usl, power_law or structural.
  model VARCHAR NOT NULL,
  -- Its parameters, as name=value.
  parameters VARCHAR NOT NULL,
  -- Root mean square of the log residuals at the measured scales.
  misfit DOUBLE NOT NULL,
  -- Predicted over measured throughput of the largest scale, fitted to all others, less 1; NULL where those are too
  -- few.
  backtest DOUBLE,
  -- Its part of the ensemble's value, 0..1.
  weight DOUBLE NOT NULL,
  -- Whether it is part of the band: within twice the best error, or without one.
  is_used BOOLEAN NOT NULL
)
