-- Where one more rank stops paying: the numbers of ranks at which marginal efficiency falls below 70 %, 50 % and 0.
-- Reads: forecast.point, replay.calibration
CREATE OR REPLACE TABLE forecast.knee (
  -- Joins meta.run.run_id: the run whose curve it is.
  run_id INTEGER NOT NULL,
  -- knee_70, knee_50 (marginal efficiency below it) or peak (throughput no longer rises).
  knee VARCHAR NOT NULL,
  -- By the weighted curve; NULL where it lies more than four times beyond the largest measured scale.
  ranks INTEGER,
  -- Smallest over the models in the band; NULL where none has it in that range.
  low INTEGER,
  -- Largest over the models in the band; NULL where one has it beyond that range.
  high INTEGER
)
