-- What an iteration of a pipeline would take in other orders of its passes: one row a (run, schedule, chunks). Played at
-- usual durations, without noise, with messages that hold up nothing but what needs them; memory may forbid any of them.
-- Only for runs whose schedule is gpipe or 1f1b with one chunk a stage.
-- Scope: run
-- Reads: timeline.pipeline, timeline.microbatch, timeline.schedule, timeline.role, timeline.message, timeline.segment, timeline.arrival, timeline.collective, timeline.communicator, timeline.rank_iteration, timeline.iteration, align.message
CREATE OR REPLACE TABLE timeline.other_schedule (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- interleaved or zb_h1, as in timeline.schedule.
  schedule VARCHAR NOT NULL,
  -- Chunks of layers a stage; each takes as long as the others of its stage.
  chunks INTEGER NOT NULL,
  -- Iteration of the slowest stage, ns.
  iteration_ns BIGINT NOT NULL,
  -- By how much that is shorter than the recorded order, played likewise, ns; below 0 where it is longer.
  saved_ns BIGINT NOT NULL
)
