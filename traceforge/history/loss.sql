-- Time of an iteration above the run's own reference, by cause: one row a run, mode and cause; they sum to the excess.
CREATE TABLE history.loss (
  -- Joins history.run.run_key.
  run_key VARCHAR NOT NULL,
  -- Failure mode.
  mode VARCHAR NOT NULL,
  -- Cause.
  cause VARCHAR NOT NULL,
  -- Mean over the judged iterations, all ranks together, ns; negative where work was faster than its reference.
  delay_ns_per_iteration DOUBLE NOT NULL,
  -- The same over the mean duration of these iterations.
  share DOUBLE NOT NULL
)
