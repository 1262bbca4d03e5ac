-- Which runs of the database lie on each run's curve, and in what the others differ: one row a (run, run or field).
-- Reads: forecast.point, replay.calibration
CREATE OR REPLACE TABLE forecast.member (
  -- Joins meta.run.run_id: whose curve.
  run_id INTEGER NOT NULL,
  -- Joins meta.run.run_id: a run on the curve, or left out of it.
  member_run_id INTEGER NOT NULL,
  -- Its name.
  name VARCHAR NOT NULL,
  -- Its number of ranks.
  ranks INTEGER NOT NULL,
  -- Its throughput: iterations a second times ranks.
  throughput DOUBLE NOT NULL,
  -- Standard deviation over mean of its iteration times; NULL below two iterations.
  cv DOUBLE,
  -- Whether it lies on the curve.
  is_used BOOLEAN NOT NULL,
  -- Field in which it differs; NULL where it is used.
  field VARCHAR,
  -- How it differs; NULL where it is used.
  detail VARCHAR
)
