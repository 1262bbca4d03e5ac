-- Files whose events are read together: as many as have so few events that they fit, or one.
--
-- What is made of each file alone is made for one row here at a time, also before it is known whose file is used for
-- which rank (see align.rank_batch).
-- Scope: run
-- Reads: meta.source
CREATE OR REPLACE TABLE align.file_batch (
  -- Lowest meta.source.source_id among them.
  first_source_id INTEGER NOT NULL,
  -- Highest of them; all between belong to them, too.
  last_source_id INTEGER NOT NULL
)
