-- Which rank each execution trace belongs to, and which timeline stands beside it: one row a trace of a file.
-- Scope: run
-- Reads: raw.chakra_file, meta.source, align.rank, raw.track
CREATE OR REPLACE TABLE graph.trace (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins meta.source.source_id of the execution trace.
  source_id INTEGER NOT NULL,
  -- Joins raw.chakra_file.part within the source.
  part INTEGER NOT NULL,
  -- As in raw.chakra_file.
  format VARCHAR NOT NULL,
  -- Global rank; NULL when unknown.
  rank INTEGER,
  -- How the rank is known: metadata, file_name or folder_name (see meta.source.rank_origin), process_id (of the one
  -- timeline of the run that has the same), file_number (a number in the file's name that tells the files of one kind
  -- apart), only_file, or unknown.
  rank_origin VARCHAR NOT NULL,
  -- Timeline of the same rank; joins meta.source.source_id. NULL when the run has none.
  timeline_source_id INTEGER
)
