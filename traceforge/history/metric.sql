-- One row a run and metric of `traceforge check --list`; those that were not measured are there with NULL.
CREATE TABLE history.metric (
  -- Joins history.run.run_key.
  run_key VARCHAR NOT NULL,
  -- Name of the metric, whose ending says the unit.
  metric VARCHAR NOT NULL,
  -- Its value; NULL where it was not measured.
  value DOUBLE,
  -- Lower end of its 95 % interval; NULL where there is none.
  low DOUBLE,
  -- Upper end.
  high DOUBLE,
  -- What was not measured may add this much to the value and to both ends.
  unknown DOUBLE
)
