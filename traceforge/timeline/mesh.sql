-- The parallel layout of a run: one row a rank and axis (pp, dp, tp, …), inferred from the groups that communicate.
--
-- Groups of equal size that tile the ranks, and meet the groups of every other axis in one rank at most, are an axis; the
-- place in the group is the coordinate. Empty where the groups form no mesh; pp alone where only the pipeline is known.
-- Scope: run
-- Reads: align.rank, align.communicator, align.message, timeline.message
CREATE OR REPLACE TABLE timeline.mesh (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank, recorded or not.
  rank INTEGER NOT NULL,
  -- Axis: pp (pipeline), dp (data), fsdp, tp (tensor), cp (context), ep (expert), or axis1, axis2, … without a name.
  axis VARCHAR NOT NULL,
  -- Place along the axis, from 0; of pp, the stage.
  coordinate INTEGER NOT NULL
)
