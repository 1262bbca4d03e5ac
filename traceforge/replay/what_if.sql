-- What if something of the job were different: one row an edit, replayed alone; a few that suit the run.
--
-- Durations stay as recorded unless the edit says otherwise. A gain is what the replay finds, not a promise: other
-- delays may take the place of what was removed, which is in it, and the job may react otherwise, which is not. Where
-- replay.calibration holds no coupling, transfers are taken not to change with the spread of arrivals.
-- Scope: run
-- Reads: graph.arrival, graph.work, timeline.window, timeline.iteration, timeline.collective, timeline.communicator
-- Reads: timeline.coverage, timeline.pipeline, timeline.other_schedule, timeline.arrival, align.rank, align.call
-- Reads: raw.collective, replay.calibration
CREATE OR REPLACE TABLE replay.what_if (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Edit, as on the command line.
  edit VARCHAR NOT NULL,
  -- Its parameters, as on the command line; empty where it has none.
  parameters VARCHAR NOT NULL,
  -- Samples a second with the edit over samples a second without; NULL where the run holds too little.
  throughput_ratio DOUBLE,
  -- Lower end of its 95 % interval; NULL where one course of a pipeline was played, too.
  throughput_ratio_low DOUBLE,
  -- Upper end of its 95 % interval.
  throughput_ratio_high DOUBLE,
  -- Mean time of an iteration with the edit, ns.
  iteration_ns BIGINT,
  -- How much shorter that is than recorded, ns; negative where it is longer.
  saved_ns_per_iteration BIGINT,
  -- What was changed and taken for granted, or why there is no answer.
  reason VARCHAR NOT NULL
)
