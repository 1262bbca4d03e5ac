-- What each finding consists of, by cause: one row a part. A finding's parts add up to its delay_ns_per_iteration.
-- Scope: run
-- Reads: attribute.finding
CREATE OR REPLACE TABLE attribute.finding_part (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins attribute.finding.finding_id within the run.
  finding_id INTEGER NOT NULL,
  -- Failure mode of the cause, as in attribute.delay.
  mode VARCHAR NOT NULL,
  -- Cause, as in attribute.delay.
  cause VARCHAR NOT NULL,
  -- Its part of the finding's cost, divided as the ledger divides it, mean over the judged iterations, ns.
  delay_ns_per_iteration BIGINT NOT NULL
)
