-- How much earlier a pipeline would be done if stages that compute longer took as long as the others: one row a longer stage
-- (timeline.stage_load.is_longer) of a run whose pipeline is known (timeline.bubble).
--
-- The pipeline's own turns are played at their usual durations, and once more with those of the stage as long as the mean of
-- the stages that are not longer. What is saved by several at once is not the sum: while another stage is as long, mending
-- one alone saves little.
-- Scope: run
-- Reads: operation.stage_work, timeline.stage_load, timeline.bubble, timeline.microbatch, timeline.role, timeline.message, timeline.segment, timeline.arrival, timeline.collective, timeline.communicator, timeline.rank_iteration, timeline.iteration, timeline.schedule, align.message
CREATE OR REPLACE TABLE operation.stage_saving (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Stage, from 0.
  stage INTEGER NOT NULL,
  -- How much shorter an iteration would be if this stage alone took as long as the stages that are not longer, ns.
  alone_ns BIGINT NOT NULL,
  -- The same of all longer stages at once that are longer for the same reason (operation.stage_work: slower, more, or none
  -- that is sure), ns.
  together_ns BIGINT NOT NULL
)
