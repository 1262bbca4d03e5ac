-- What operation.kernel holds of the device's work, and of the rest why not: one row a rank and reason.
--
-- The events of a rank add up to those of its file; those in operation.kernel are the rows with `is_counted`.
-- Scope: rank
-- In parts by: align.rank_batch
-- Reads: operation.kernel
CREATE OR REPLACE TABLE operation.coverage (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- As operation.kernel.joined, or not_judged (outside of judged iterations) or no_time (without start or duration).
  reason VARCHAR NOT NULL,
  -- Whether the events are in operation.kernel.
  is_counted BOOLEAN NOT NULL,
  -- Number of kernels, copies and memory sets (of operations on a rank without a device).
  events BIGINT NOT NULL,
  -- Their time, ns.
  duration_ns BIGINT NOT NULL
)
