-- Which communicator of NCCL's logs is which process group of the timeline.
-- Reads: fabric.communicator, fabric.operation, fabric.member, timeline.communicator, timeline.collective
CREATE OR REPLACE TABLE fabric.communicator_match (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins fabric.communicator.communicator_id within the run.
  communicator_id INTEGER NOT NULL,
  -- Joins timeline.communicator.communicator_id within the run.
  timeline_communicator_id BIGINT NOT NULL,
  -- How far the two agree, 0..1: share of the timeline's collectives that the log states in the same order; where no
  -- calls are logged, 1 over the number of communicators with these ranks.
  score DOUBLE NOT NULL,
  -- How it is known: sequence (same ranks, same operations and sizes in order) or ranks (same ranks alone).
  method VARCHAR NOT NULL,
  -- The timeline's first collective is this one of fabric.operation.sequence; NULL where several places fit as well,
  -- as they do where iterations are alike.
  first_sequence BIGINT,
  -- Whether another communicator fits as well.
  is_ambiguous BOOLEAN NOT NULL
)
