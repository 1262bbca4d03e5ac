-- What the device of each rank worked on in judged iterations: one row a distinct kernel, operation, module and shapes.
--
-- A call is joined to what launched it by its correlation, and the launch to the innermost host operation, annotation
-- and module around it on its thread. On ranks without a device the host's operations stand in, with the time that is
-- their own. operation.coverage counts what has no operation, and why.
-- Scope: rank
-- In parts by: align.rank_batch
-- Reads: operation.judged_iteration, operation.device, timeline.window, align.rank, align.name_class, align.step
-- Reads: align.is_step_name, align.clock_piece, raw.event_kind, raw.occurrence, raw.operation_input
CREATE OR REPLACE TABLE operation.kernel (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Kernel, copy or memory set by a short name; NULL for work of a host.
  kernel VARCHAR,
  -- Its name as recorded; NULL for work of a host.
  full_name VARCHAR,
  -- Class of the event as in align.name_class: compute, communication or copy; that of the operation for work of a host.
  class VARCHAR NOT NULL,
  -- What it computes, one of: communication, copy, memset, attention, convolution, matrix_product, normalisation,
  -- optimiser, embedding, softmax, reduction, generated, elementwise, other.
  kind VARCHAR NOT NULL,
  -- Innermost host operation around the launch; NULL where there is none (see `joined`).
  operation VARCHAR,
  -- Innermost annotation around the launch, on its thread or else on the training thread, but steps; NULL where none.
  annotation VARCHAR,
  -- Innermost nn.Module around the launch; NULL where modules were not recorded, and in backward.
  module VARCHAR,
  -- Shapes of the operation's inputs as recorded; NULL where not recorded, or not kept as no work follows from them.
  shapes VARCHAR,
  -- Element type of the operation's first tensor; NULL as above.
  dtype VARCHAR,
  -- How arithmetic and bytes are known: shapes (closed forms of the inputs), stacked_rows (a product of groups, by the rows
  -- of all groups together: at most so much, as rows may be free) or launch_arguments (a generated kernel, by the tensors
  -- it is given: at least so many bytes); NULL where they are not.
  work_basis VARCHAR,
  -- How it is known: operation, graph_launch (a captured graph names no operation), no_operation (the launch lies in
  -- none), no_launch (the trace lacks the launch), no_correlation, or host.
  joined VARCHAR NOT NULL,
  -- Number of calls.
  calls BIGINT NOT NULL,
  -- Their time, ns; calls on several streams at once each count.
  duration_ns BIGINT NOT NULL,
  -- Median of a call, ns.
  p50_ns BIGINT NOT NULL,
  -- Duration that one call in twenty exceeds, ns.
  p95_ns BIGINT NOT NULL,
  -- Calls of the operation that are counted here, each in the row of its longest kernel.
  operation_calls BIGINT NOT NULL,
  -- Arithmetic of these, by closed forms; NULL where not known, and of operations of which bytes alone are counted
  -- (norms, softmax, element-wise work, copies, embeddings, reductions, optimisers).
  flops BIGINT,
  -- Bytes these have to move at least; NULL where not known.
  bytes BIGINT,
  -- Achieved arithmetic, FLOP/s, over the row's time; NULL where not known.
  flops_per_s DOUBLE,
  -- Time that the arithmetic would take at the device's peak, ns; 0 where bytes alone are counted, NULL where arithmetic,
  -- bytes or peaks are not known.
  arithmetic_duration_ns BIGINT,
  -- Time that the bytes would take at the pace of the device's memory, ns; more than the row took where a cache held
  -- them; NULL as above.
  memory_duration_ns BIGINT,
  -- Which of the two limits it, by the roofline: compute or memory; NULL as above.
  bound VARCHAR
)
