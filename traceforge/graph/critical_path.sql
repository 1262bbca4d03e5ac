-- The chain of work, transfers and pauses that set the run's length: consecutive pieces from the first start to the
-- last end, without gap or overlap, crossing from rank to rank where one waited for another.
-- Scope: run
-- Reads: graph.arrival, graph.work, timeline.window
CREATE OR REPLACE TABLE graph.critical_path (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Number of the piece, from 0, in order of time.
  piece INTEGER NOT NULL,
  -- Iteration in which the piece lies; the earlier one for a pause between two.
  iteration INTEGER NOT NULL,
  -- Rank on which the piece lies.
  rank INTEGER NOT NULL,
  -- work (of the rank), transfer (of a collective, after it began on its last member), pause (before an iteration) or unknown
  -- (an iteration that is not in the graph, or a wait that the clocks cannot place).
  kind VARCHAR NOT NULL,
  -- Collective of a transfer; joins timeline.collective.collective_id. NULL for other kinds.
  collective_id BIGINT,
  -- Start, aligned clock, ns.
  start_ns BIGINT NOT NULL,
  -- Duration, ns, > 0.
  duration_ns BIGINT NOT NULL
)
