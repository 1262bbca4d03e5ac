-- What a mean iteration of a pipeline consists of, and what it would take at other settings: one row a run whose pipeline
-- is known (timeline.bubble). Means over its ranks and judged iterations but the first.
--
-- What more micro-batches of the same size leave follows from the schedule: filling and draining stay as long, all else of
-- a micro-batch comes once more. So the batch grows; smaller micro-batches of the same batch would compute less densely.
-- Scope: run
-- Reads: timeline.bubble, timeline.iteration, timeline.rank_iteration, timeline.schedule
CREATE OR REPLACE TABLE timeline.pipeline (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Micro-batches of an iteration.
  microbatches INTEGER NOT NULL,
  -- Whether the first judged iteration is left out of these means; it counts only if it is alone.
  is_first_left_out BOOLEAN NOT NULL,
  -- Iteration of a rank, ns.
  iteration_ns BIGINT NOT NULL,
  -- All kinds of timeline.bubble but launch, which is the host's: what the rank waits for other stages, ns.
  bubble_ns BIGINT NOT NULL,
  -- Of it what the schedule alone explains, fill and drain, ns.
  fill_drain_ns BIGINT NOT NULL,
  -- Imbalance, ns.
  imbalance_ns BIGINT NOT NULL,
  -- Messages, ns.
  transfer_ns BIGINT NOT NULL,
  -- Ranks that take longer than usual, ns.
  late_peer_ns BIGINT NOT NULL,
  -- Work that comes once an iteration, not once a micro-batch: input, gradients' reduction, optimizer, ns.
  beside_ns BIGINT NOT NULL,
  -- By how much the iteration would be shorter if the same passes took equally long on all stages, played, ns.
  even_saved_ns BIGINT NOT NULL,
  -- Four times as many micro-batches: an example of more.
  more_microbatches INTEGER NOT NULL,
  -- Iteration with these, ns.
  more_iteration_ns BIGINT NOT NULL,
  -- Share of it that would be fill and drain, 0..1.
  more_fill_drain_share DOUBLE NOT NULL
)
