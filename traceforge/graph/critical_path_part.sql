-- What each piece of the critical path consists of; the parts of a piece add up to its duration.
-- Scope: run
-- Reads: graph.critical_path, timeline.segment
CREATE OR REPLACE TABLE graph.critical_path_part (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins graph.critical_path.piece.
  piece INTEGER NOT NULL,
  -- Of work, what the rank did: compute, copy, input, idle, transfer or wait (exposed communication that the path does
  -- not cross), or the host's activity in runtime, such as launch or allocator. Else the piece's kind: transfer, pause
  -- or unknown.
  cause VARCHAR NOT NULL,
  -- Time, ns, > 0.
  duration_ns BIGINT NOT NULL
)
