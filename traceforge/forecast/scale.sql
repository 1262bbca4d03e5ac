-- Throughput by number of ranks: what was measured, each model, and all of them together with their band.
--
-- With comparable runs at one scale only, the measured point and nothing else; at two, Amdahl's line without a band.
-- See forecast.fit for how well each model told the largest scale from the others, forecast.need for what is missing.
-- Reads: forecast.point, replay.calibration
CREATE OR REPLACE TABLE forecast.scale (
  -- Joins meta.run.run_id: the run whose curve it is.
  run_id INTEGER NOT NULL,
  -- What the value comes from: measured, ensemble, or a model such as usl.
  model VARCHAR NOT NULL,
  -- Number of ranks.
  ranks INTEGER NOT NULL,
  -- Iterations a second; NULL more than four times beyond the largest measured scale, where only a band is given.
  value DOUBLE,
  -- Lower end: of the 95 % interval over steps (measured), or of the band (ensemble); NULL where there is none.
  low DOUBLE,
  -- Upper end, likewise.
  high DOUBLE,
  -- True beyond the measured scales.
  extrapolated BOOLEAN NOT NULL,
  -- Iterations a second times ranks: in step with samples a second at one batch per rank; NULL as value.
  throughput DOUBLE,
  -- Throughput per rank over that at the smallest measured scale of the curve; NULL as value.
  efficiency DOUBLE
)
