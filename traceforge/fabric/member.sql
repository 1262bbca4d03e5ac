-- Members of NCCL communicators: one row per rank of a communicator that appears in some log.
-- Scope: run
-- Reads: fabric.process, raw.nccl_communicator, raw.nccl_link, raw.nccl_record
CREATE OR REPLACE TABLE fabric.member (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins fabric.communicator.communicator_id within the run, unless its identity is implied.
  communicator_id INTEGER NOT NULL,
  -- Rank in the communicator; NULL where the log shows calls but no init.
  rank INTEGER,
  -- Rank in the job; NULL when unknown.
  global_rank INTEGER,
  -- How the global rank is known: launcher (or file name), communicator (rank in the one that spans the job), order (a
  -- guess: hosts by name, then devices) or unknown.
  global_rank_origin VARCHAR NOT NULL,
  -- How the communicator is known: hash (its id is printed), split (parent, color and order), inferred (size, order and
  -- location of the members, or the ranks that another one lacks), alone (no other member's log fits) or implied (the
  -- run's logs name none: the connections of its processes are taken for those of one, whose size is not known).
  identity VARCHAR NOT NULL,
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source; where the identity is implied, the first connection's record.
  handle_id BIGINT NOT NULL,
  -- Joins fabric.process.process within the run.
  process INTEGER NOT NULL,
  -- Host name.
  host VARCHAR NOT NULL,
  -- CUDA device number in its process.
  device INTEGER,
  -- PCI address of the GPU.
  pci_address VARCHAR,
  -- Line of the log that first mentions it, from 1.
  line BIGINT NOT NULL
)
