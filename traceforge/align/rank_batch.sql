-- Ranks whose events are read together: as many as have so few events that they fit, or one.
--
-- What is made of each rank's events alone is made for one row here at a time, so that memory does not grow with the
-- number of ranks.
-- Scope: run
-- Reads: align.rank
CREATE OR REPLACE TABLE align.rank_batch (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Lowest of the ranks.
  first_rank INTEGER NOT NULL,
  -- Highest of the ranks.
  last_rank INTEGER NOT NULL,
  -- Lowest meta.source.source_id among the files of these ranks; ranks of other batches may lie between.
  first_source_id INTEGER NOT NULL,
  -- Highest of them.
  last_source_id INTEGER NOT NULL,
  -- Events of the file among them that holds most.
  most_events BIGINT NOT NULL
)
