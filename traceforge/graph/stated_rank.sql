-- Execution traces whose content states another rank than their file is taken for: one row a (trace, rank stated, basis).
-- Scope: run
-- Reads: graph.trace, meta.source, raw.chakra_communication, raw.chakra_file, raw.chakra_process_group, raw.track
CREATE OR REPLACE TABLE graph.stated_rank (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins graph.trace.source_id.
  source_id INTEGER NOT NULL,
  -- Joins graph.trace.part.
  part INTEGER NOT NULL,
  -- Rank that the trace is taken for (graph.trace.rank).
  rank INTEGER NOT NULL,
  -- Rank that its content states.
  stated_rank BIGINT NOT NULL,
  -- group (place in the list of a group's members), message (sender of its sends, receiver of its receives), or
  -- process_id (of the timeline of that rank, and not of its own).
  basis VARCHAR NOT NULL,
  -- Calls that state it; NULL for a process id.
  call_count BIGINT
)
