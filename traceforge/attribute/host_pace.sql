-- How long each host works for itself in its step: however fast its device and the other ranks are, it takes as long.
--
-- Only of runs of several ranks with devices that lose time, and of some ranks where there are many. A host that launches ahead of its
-- device is held up by nothing else, though its device seems to wait for other ranks.
-- Scope: run
-- Reads: align.rank, align.rank_batch, align.step, align.name_class, align.clock_piece, raw.event_kind, raw.occurrence
-- Reads: graph.arrival, graph.work, timeline.window, timeline.iteration, timeline.collective, timeline.message, timeline.role
-- Reads: align.is_step_name
CREATE OR REPLACE TABLE attribute.host_pace (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Iteration number.
  iteration INTEGER NOT NULL,
  -- Duration of the host's step, ns.
  step_ns BIGINT NOT NULL,
  -- Of it, time in which the host surely works and does not wait for its device or for other ranks, ns: a lower bound.
  host_ns BIGINT NOT NULL,
  -- Of that, fetching input, ns.
  input_ns BIGINT NOT NULL,
  -- Time in which it seems to fetch input, and waits for its device, ns; some of it may be work.
  fetching_wait_ns BIGINT NOT NULL,
  -- Time in which nothing of the host is recorded while its device neither computes nor copies, ns: Python, or a wait for others.
  unnamed_ns BIGINT NOT NULL,
  -- Time in calls that wait for its device (cudaStreamSynchronize, say), ns; the device may wait for other ranks meanwhile.
  awaited_ns BIGINT NOT NULL
)
