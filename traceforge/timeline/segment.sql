-- What each rank was doing when: consecutive intervals of one phase each, filling every iteration without gap.
-- Scope: rank
-- In parts by: align.rank_batch
-- Reads: timeline.window, timeline.arrival, timeline.collective, align.call, align.rank, align.name_class, align.step
-- Reads: align.is_step_name, align.clock_piece, align.unmatched_endpoint, raw.event_kind, raw.occurrence
CREATE OR REPLACE TABLE timeline.segment (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Iteration number.
  iteration INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- One of: {phases}.
  phase VARCHAR NOT NULL,
  -- What the training thread, or the one of the backward pass, did meanwhile, the first of these that applies:
  -- {activities}, unnamed; NULL while the phase is compute or copy.
  activity VARCHAR,
  -- Start, aligned clock, ns.
  start_ns BIGINT NOT NULL,
  -- Duration, ns, > 0.
  duration_ns BIGINT NOT NULL,
  -- Communication that ran meanwhile although the phase is compute, ns.
  hidden_communication_ns BIGINT NOT NULL
)
