-- What each number of ranks brings and costs, at assumptions that `traceforge forecast` can be given others for.
--
-- Assumed: one unit of money is what a GPU costs in 24 minutes (2.5 an hour); one GPU a rank; a failure every 45,600
-- hours of a GPU (466 in 54 days on 16,384, Llama 3); 60 s to write a checkpoint, at the interval sqrt(2 x 60 s x mean
-- time between failures of the job) (Young, Daly); 600 s from a failure to the first repeated iteration. A sample is
-- what one rank handles in one iteration.
-- Reads: forecast.point, replay.calibration
CREATE OR REPLACE TABLE forecast.plan (
  -- Joins meta.run.run_id: the run whose curve it is.
  run_id INTEGER NOT NULL,
  -- Number of ranks.
  ranks INTEGER NOT NULL,
  -- True beyond the measured scales.
  extrapolated BOOLEAN NOT NULL,
  -- Iterations a second times ranks, without failures; NULL where only a band is given.
  throughput DOUBLE,
  -- Lower end of the band.
  throughput_low DOUBLE,
  -- Upper end of the band.
  throughput_high DOUBLE,
  -- Throughput per rank over that at the smallest measured scale.
  efficiency DOUBLE,
  -- Lower end of the band.
  efficiency_low DOUBLE,
  -- Upper end of the band.
  efficiency_high DOUBLE,
  -- What one more rank adds, over the throughput per rank at the smallest measured scale; NULL without a curve.
  marginal_efficiency DOUBLE,
  -- Share of the time that is work: the rest goes to checkpoints, repeated work and restarts.
  work_share DOUBLE NOT NULL,
  -- Checkpoint interval that loses least, s.
  checkpoint_interval_s DOUBLE NOT NULL,
  -- Money for one sample, failures included.
  cost_per_sample DOUBLE,
  -- Lower end of the band.
  cost_low DOUBLE,
  -- Upper end of the band.
  cost_high DOUBLE,
  -- Energy for one sample, J; NULL, for no power is assumed.
  energy_per_sample_j DOUBLE
)
