-- Ranks that process groups of execution traces list, and of which no file is: one row a (run, rank).
-- Scope: run
-- Reads: graph.communication, graph.trace, align.rank
CREATE OR REPLACE TABLE graph.absent_rank (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank without a file.
  rank BIGINT NOT NULL,
  -- Process groups, of which traces record calls, that list it.
  group_count BIGINT NOT NULL
)
