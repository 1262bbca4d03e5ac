-- One row a training step of one rank, as the trace marks it, or inferred from what repeats.
--
-- ProfilerStep annotations on the host decide (their copies on the device do not count). Where a rank has none, the
-- run's steps are inferred from what an inference engine writes around its batches, from another annotation that repeats
-- (`train`) or counts (`step 7`, `step 8`), from Optimizer.step, or from the period of the sequence of collectives or
-- kernels, in this order, if all ranks agree on their number. Otherwise a rank has one step, number 0, that spans its
-- whole trace. Where some ranks have annotations, one without takes the steps of a rank that issues the same calls.
-- Scope: run
-- Reads: align.rank, align.call, align.name_class, raw.event
CREATE OR REPLACE TABLE align.step (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Number in ProfilerStep#N, or in the annotation; counted from 0 where the trace does not number its steps.
  iteration INTEGER NOT NULL,
  -- Start, ns on the rank's own clock.
  raw_start_ns BIGINT NOT NULL,
  -- End, ns on the rank's own clock.
  raw_end_ns BIGINT NOT NULL,
  -- How the step is known: profiler_step, peer (as a rank marks it that issues the same calls), annotation, optimizer,
  -- collective_period, kernel_period or window.
  origin VARCHAR NOT NULL,
  -- False where nothing marks steps and the whole window stands in.
  is_marked BOOLEAN NOT NULL,
  -- False for a first or last step of which the window holds a part only (fewer collective calls than others have), and
  -- for a last turn that the window ends sooner or later than others last.
  is_whole BOOLEAN NOT NULL,
  -- Name of the annotation taken for the step, with # in the place of its numbers; NULL where origin is another one. In
  -- the name of an inference engine's batch a zero is kept: it tells a decode from a prefill.
  annotation VARCHAR
)
