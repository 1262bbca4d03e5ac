-- Parameters of policies tried on the recorded iterations; empty where no coupling was measured, as none can help then.
-- Scope: run
-- Reads: graph.arrival, graph.work, timeline.window, timeline.iteration, align.rank, replay.calibration, timeline.coverage
CREATE OR REPLACE TABLE replay.sweep (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Policy, as on the command line.
  policy VARCHAR NOT NULL,
  -- Its parameters, as on the command line; empty where it has none.
  parameters VARCHAR NOT NULL,
  -- As in replay.outcome.
  throughput_ratio DOUBLE NOT NULL,
  -- Lower end of its 95 % interval.
  throughput_ratio_low DOUBLE NOT NULL,
  -- Upper end of its 95 % interval.
  throughput_ratio_high DOUBLE NOT NULL,
  -- Standard deviation over mean of the iteration time; NULL below two iterations.
  cv DOUBLE,
  -- Lower end of its 95 % interval.
  cv_low DOUBLE,
  -- Upper end of its 95 % interval.
  cv_high DOUBLE,
  -- As in replay.outcome.
  verdict VARCHAR NOT NULL,
  -- True where no other row has both more throughput and less variation.
  is_on_front BOOLEAN NOT NULL
)
