-- One row a run and part of its mean iteration, as attribute.bottleneck had it for the whole job.
CREATE TABLE history.bottleneck (
  -- Joins history.run.run_key.
  run_key VARCHAR NOT NULL,
  -- 1 for the largest avoidable part.
  place INTEGER NOT NULL,
  -- Name of the part.
  bound VARCHAR NOT NULL,
  -- Whether it can be avoided.
  is_avoidable BOOLEAN,
  -- Mean time of an iteration, ns; NULL where it was not measured.
  duration_ns_per_iteration BIGINT,
  -- Share of the mean iteration; NULL as above.
  share DOUBLE
)
