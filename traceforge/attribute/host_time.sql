-- How long each host spends on what may keep its device waiting, whether the device has work meanwhile or not.
--
-- A host that is behind shows everything that it does, also what it does no longer than the others: this says what it does longer.
-- Scope: run
-- Reads: align.rank, align.rank_batch, align.step, align.name_class, align.clock_piece, raw.event_kind, raw.occurrence
-- Reads: graph.arrival, graph.work, timeline.window, timeline.iteration, timeline.collective, timeline.message, timeline.role
-- Reads: align.is_step_name
CREATE OR REPLACE TABLE attribute.host_time (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank; the ranks are those of attribute.host_pace.
  rank INTEGER NOT NULL,
  -- Iteration number.
  iteration INTEGER NOT NULL,
  -- Cause that owns such time where the device waits for it.
  cause VARCHAR NOT NULL,
  -- Time in the host's step, ns; of issuing work, what surely is no wait for the device.
  host_ns BIGINT NOT NULL
)
