-- One row a group of ranks that communicates.
-- Scope: run
-- Reads: align.call, align.step, align.rank_list, raw.process_group, align.rank, meta.run
CREATE OR REPLACE TABLE align.communicator (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Small integer within the run: the largest group is 0.
  communicator_id BIGINT NOT NULL,
  -- Process group name; empty where the trace states none.
  name VARCHAR NOT NULL,
  -- Description from the job's list of process groups; empty where there is none.
  description VARCHAR NOT NULL,
  -- Member ranks, ascending, whether or not their traces are here.
  ranks INTEGER[] NOT NULL,
  -- Number of members that are known.
  size BIGINT NOT NULL,
  -- How the membership is known: stated, assumed, inferred or unknown (see align.membership), the first in the alphabet
  -- where calls differ.
  origin VARCHAR NOT NULL
)
