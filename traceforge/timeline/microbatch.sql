-- One row a pass of a micro-batch through a chunk of a pipeline's stage: a turn of its rank.
--
-- Told from the kernels that a host launches between its sends and receives, from autograd's operations, and from the
-- annotations of torch.distributed.pipelining where there are any. Iterations of a rank in which turns and messages do
-- not agree have no rows. Of hosts without devices, operations stand in for kernels.
-- Scope: iteration
-- Reads: timeline.role, timeline.message, align.endpoint, align.step, align.rank, align.rank_batch, align.clock_piece, align.name_class, raw.event_kind, raw.occurrence
CREATE OR REPLACE TABLE timeline.microbatch (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Iteration in which the rank's host launched it.
  iteration INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Place in the order of the rank's turns of this iteration, from 0.
  turn INTEGER NOT NULL,
  -- Chunk (virtual stage) of the rank, from 0, in the order in which a micro-batch passes them.
  chunk INTEGER NOT NULL,
  -- Micro-batch, from 0, in the order in which the first stage takes them up.
  microbatch INTEGER NOT NULL,
  -- forward, backward, or its parts backward_input and backward_weight where they are apart.
  direction VARCHAR NOT NULL,
  -- When the host launched its first kernel, aligned clock, ns.
  issue_ns BIGINT NOT NULL,
  -- Start of its first kernel, aligned clock, ns.
  start_ns BIGINT NOT NULL,
  -- From there to the end of its last kernel, ns.
  duration_ns BIGINT NOT NULL
)
