-- Throughput and cost by number of ranks: what was measured, each model, and all of them together with their band.
--
-- With comparable runs at one scale only, the measured points and nothing else; at two, Amdahl's line without a band.
-- A curve holds on one side of the boundary of a host: its models are fitted to the scales that use the same links as
-- the largest, and nothing is said beyond a host where no run crossed hosts. The band is one of 90 %: what the models
-- differ by, what the noise of the points makes of them, and what they missed scales by that they were not fitted to,
-- for each doubling beyond the largest.
-- See forecast.fit for how well each model predicted the largest scale from the others, forecast.missing_measurement
-- for what is missing. `traceforge forecast` takes other assumptions about costs than these: one unit of money is what
-- a GPU costs in 24 minutes (2.5 an hour); one GPU a rank; a failure every 45,600 hours of a GPU (466 in 54 days on
-- 16,384, Llama 3); 60 s to write a checkpoint, at the interval sqrt(2 x 60 s x mean time between failures of the job)
-- (Young, Daly); 600 s from a failure to the first repeated iteration. A sample is what one rank handles in one
-- iteration.
-- Scope: run
-- Reads: forecast.point, forecast.outlook, replay.calibration
CREATE OR REPLACE TABLE forecast.scale (
  -- Joins meta.run.run_id: the run whose curve it is.
  run_id INTEGER NOT NULL,
  -- What the value comes from: measured, ensemble, or a model such as usl.
  model VARCHAR NOT NULL,
  -- Joins meta.run.run_id: the run that was measured, which lies on this curve; NULL for models.
  measured_run_id INTEGER,
  -- Number of ranks.
  ranks INTEGER NOT NULL,
  -- Iterations a second; NULL more than four times beyond the largest measured scale, where only a band is given.
  value DOUBLE,
  -- Lower end: of the 95 % interval over steps (measured), or of the 90 % band (ensemble); NULL where there is none.
  low DOUBLE,
  -- Upper end, likewise.
  high DOUBLE,
  -- True beyond the measured scales.
  extrapolated BOOLEAN NOT NULL,
  -- Iterations a second times ranks, without failures: proportional to samples a second at one batch per rank.
  throughput DOUBLE,
  -- Throughput per rank over that at the smallest measured scale of the curve.
  efficiency DOUBLE,
  -- Lower end of its band.
  efficiency_low DOUBLE,
  -- Upper end of its band.
  efficiency_high DOUBLE,
  -- What one more rank adds, over the throughput per rank at the smallest measured scale; ensemble only.
  marginal_efficiency DOUBLE,
  -- Share of the time that is work: the rest goes to checkpoints, repeated work and restarts; NULL for single models.
  work_share DOUBLE,
  -- Money for one sample, failures included; NULL for single models.
  cost_per_sample DOUBLE,
  -- Lower end of its band.
  cost_low DOUBLE,
  -- Upper end of its band.
  cost_high DOUBLE,
  -- Why nothing is said of the throughput: no run crossed hosts, and so many ranks may; NULL where something is said.
  refusal VARCHAR
)
