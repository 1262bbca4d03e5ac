-- How steady a run is: variation, tails, trends, how often the last arriver changes, and restarts.
--
-- Trends are slopes over iterations, whose intervals allow for errors that follow one another. Each row
-- explains its measure.
-- Scope: run
-- Reads: forecast.point, forecast.outlook, replay.calibration, timeline.iteration, timeline.phase, timeline.collective, attribute.delay, attribute.finding, align.rank
CREATE OR REPLACE TABLE forecast.stability (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Name of the measure, such as cv or last_arriver_churn.
  measure VARCHAR NOT NULL,
  -- Its value, a share or a ratio unless the meaning says otherwise; iterations for repeated_iterations; NULL for the
  -- verdict.
  value DOUBLE,
  -- Lower end of its 95 % interval; NULL where there is none.
  low DOUBLE,
  -- Upper end of its 95 % interval; NULL where there is none.
  high DOUBLE,
  -- Number of iterations, or of pairs of them, it rests on.
  n BIGINT NOT NULL,
  -- Its meaning, in one sentence.
  meaning VARCHAR NOT NULL
)
