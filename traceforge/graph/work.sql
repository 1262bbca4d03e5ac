-- A rank's own work between the collectives of its chain. Together with graph.arrival it rebuilds each iteration exactly.
--
-- part `before_arrival`: after what came before (iteration start, or the previous position's arrival or awaited
-- end) until the arrival at `position`; the position after the last one is the iteration's end. part `before_wait`:
-- after the arrival at `position` until the rank awaits graph.arrival.awaited_position. Time blocked in that wait is
-- not work and is absent; communication that is exposed but not awaited counts as work of its phase: it hides
-- a gap of the rank's own.
-- Scope: rank
-- Reads: align.rank, graph.arrival, timeline.arrival, timeline.segment, timeline.window
CREATE OR REPLACE TABLE graph.work (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Iteration number.
  iteration INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Joins graph.arrival.position; one more than the last for the stretch that ends the iteration.
  position INTEGER NOT NULL,
  -- before_arrival or before_wait.
  part VARCHAR NOT NULL,
  -- Phase, as in timeline.segment.
  phase VARCHAR NOT NULL,
  -- Host activity, as in timeline.segment; NULL while the phase is compute or copy.
  activity VARCHAR,
  -- Work, ns, > 0.
  duration_ns BIGINT NOT NULL,
  -- As graph.arrival.is_regular; true of an iteration without collectives.
  is_regular BOOLEAN NOT NULL
)
