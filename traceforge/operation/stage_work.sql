-- Why stages of a pipeline compute longer, as far as their kernels tell: one row a longer stage (timeline.stage_load.is_longer)
-- that runs kernels of the others. The other stages are those that are not longer.
--
-- What its kernels take above those of the mean other stage is the sum of four parts: slower + more calls + own - missing.
-- Scope: run
-- Reads: operation.stage_kernel, timeline.stage_load
CREATE OR REPLACE TABLE operation.stage_work (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Stage, from 0.
  stage INTEGER NOT NULL,
  -- slower (the same work as often, in longer calls), perhaps_slower (likewise, but too few shapes of inputs are known) or
  -- more (more calls, or kernels that no other stage runs), where that is nearly all; NULL where nothing is.
  reason VARCHAR,
  -- Of calls that take longer than in the mean other stage, ns an iteration; negative where they are shorter.
  slower_ns BIGINT NOT NULL,
  -- Of more calls of kernels that other stages run, too, ns an iteration; negative where they are fewer.
  more_calls_ns BIGINT NOT NULL,
  -- Of kernels that no other stage runs, by name, operation and shapes, ns an iteration.
  own_ns BIGINT NOT NULL,
  -- Of kernels that only others run, in the mean other stage, ns an iteration.
  missing_ns BIGINT NOT NULL,
  -- How much longer calls of kernels that others run take at least, as a share; a twentieth of their time is below.
  low_slowdown DOUBLE NOT NULL,
  -- The same at most; a twentieth is above.
  high_slowdown DOUBLE NOT NULL
)
