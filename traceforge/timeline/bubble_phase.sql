-- How much of each phase of communication is bubble of a pipeline: one row an iteration, rank and phase with timeline.bubble.
--
-- It is the part of timeline.phase in which messages run, or collectives in which stages meet; the rest of the phase is
-- that of collectives among ranks of one stage. Bubble in which nothing runs at all is in none of these rows.
-- Scope: iteration
-- Reads: timeline.bubble
CREATE OR REPLACE TABLE timeline.bubble_phase (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Iteration number.
  iteration INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- wait, transfer or communication; see timeline.phase.
  phase VARCHAR NOT NULL,
  -- Time, ns.
  duration_ns BIGINT NOT NULL
)
