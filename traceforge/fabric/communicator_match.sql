-- Process groups of the timeline matched to communicators of NCCL's logs: one row per match.
-- Scope: run
-- Reads: fabric.communicator, fabric.link, fabric.operation, fabric.member, timeline.communicator, timeline.collective
-- Reads: align.call, align.membership
CREATE OR REPLACE TABLE fabric.communicator_match (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins fabric.communicator.communicator_id within the run.
  communicator_id INTEGER NOT NULL,
  -- Joins timeline.communicator.communicator_id within the run.
  timeline_communicator_id BIGINT NOT NULL,
  -- Agreement, 0..1: share of the timeline's collectives that the log states in the same order; where no calls are
  -- logged, 1 over the number of communicators with these ranks.
  score DOUBLE NOT NULL,
  -- How it is known: sequence (same ranks, same operations and sizes in order) or ranks (same ranks alone).
  method VARCHAR NOT NULL,
  -- fabric.operation.sequence of the timeline's first collective; NULL where several positions fit equally well, as
  -- they do where iterations are alike.
  first_sequence BIGINT,
  -- Whether another communicator fits equally well.
  is_ambiguous BOOLEAN NOT NULL
)
