-- What the search would have found in this run: what "nothing significant" excludes. One row a subject kind and cause.
--
-- A known delay is added to the run's own losses, to one subject after another, and the same test asked again (see
-- attribute/findings/sight.py); what findings explain is left out before. Sizes are tried on a grid.
-- Scope: run
-- Reads: attribute.delay, attribute.pace, attribute.finding
CREATE OR REPLACE TABLE attribute.sight (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- rank, ranks (two of them alike, of five or more), host (only where ranks are on several hosts), stage or job (all alike).
  subject_kind VARCHAR NOT NULL,
  -- Cause, as in attribute.delay.
  cause VARCHAR NOT NULL,
  -- persistent (in all iterations) or episode (a quarter of them in a row).
  pattern VARCHAR NOT NULL,
  -- The smallest delay that would have been found in 95 % of draws, mean over the judged iterations, ns; NULL where none
  -- would: what is slow for everyone, or for all ranks of a stage, in all iterations is what the run is held against.
  smallest_delay_ns_per_iteration BIGINT
)
