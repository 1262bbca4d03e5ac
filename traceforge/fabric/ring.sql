-- Rings of channels, reconstructed: one row per (communicator, channel, position).
-- Scope: run
-- Reads: fabric.edge, fabric.member, fabric.communicator, raw.nccl_ring_member, raw.nccl_ring_order, raw.nccl_record
CREATE OR REPLACE TABLE fabric.ring (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins fabric.communicator.communicator_id within the run.
  communicator_id INTEGER NOT NULL,
  -- Channel number.
  channel INTEGER NOT NULL,
  -- Position in the ring, from 0; rank 0 comes first where it is known.
  position INTEGER NOT NULL,
  -- Rank in the communicator.
  rank INTEGER NOT NULL,
  -- Rank it sends to; NULL where no log states it.
  next_rank INTEGER,
  -- Source: members (each rank's own GRAPH line), order (the line that lists all ranks) or edges (the
  -- first connection each rank makes on the channel).
  origin VARCHAR NOT NULL,
  -- Whether the ring passes every rank of the communicator once and closes.
  is_complete BOOLEAN NOT NULL
)
