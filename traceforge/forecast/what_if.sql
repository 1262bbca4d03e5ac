-- What a change would bring at this run's scale: throughput, GPUs and money.
--
-- Fixes come from the findings (replayed without their delay), other changes from replay.what_if; those it does not
-- cover from the alpha-beta model of the measured terms. With one scale, that cannot separate latency from bandwidth,
-- and the interval spans both cases.
-- Money is at 2.5 a GPU-hour. What a change of training does to convergence is not judged.
-- Scope: run
-- Reads: forecast.point, forecast.outlook, replay.calibration, replay.what_if, attribute.finding
CREATE OR REPLACE TABLE forecast.what_if (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Number of ranks it is worked out at.
  ranks INTEGER NOT NULL,
  -- fix, faster_fabric, hierarchical, tree or local_sgd.
  kind VARCHAR NOT NULL,
  -- The change, in words.
  change VARCHAR NOT NULL,
  -- Throughput with it over throughput without.
  throughput_ratio DOUBLE NOT NULL,
  -- Lower end of its interval; NULL where there is none.
  low DOUBLE,
  -- Upper end of its interval; NULL where there is none.
  high DOUBLE,
  -- GPUs that would have to be added for the same throughput: along the curve, else at the present efficiency; NULL
  -- where no number up to four times the largest measured scale brings it.
  gpus DOUBLE,
  -- What those GPUs cost an hour; NULL as gpus.
  worth_per_hour DOUBLE,
  -- Price of a GPU-hour that the change may add before a sample gets dearer.
  break_even_price DOUBLE NOT NULL,
  -- What it rests on.
  basis VARCHAR NOT NULL
)
