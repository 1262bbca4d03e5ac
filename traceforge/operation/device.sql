-- What each rank's device is, and what it can do at most: one row a rank with a device. Peaks are dense, from
-- peaks.toml or the user.
-- Scope: rank
-- Reads: align.rank, align.extent, raw.profile, meta.stated_rate
CREATE OR REPLACE TABLE operation.device (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Name as the profiler records it in deviceProperties; NULL where it does not.
  device VARCHAR,
  -- Peak of products in bf16 or fp16, FLOP/s; NULL where the device is not known, or has none.
  bf16_flops_per_s DOUBLE,
  -- Peak of products of fp32 in TF32, FLOP/s; NULL as above.
  tf32_flops_per_s DOUBLE,
  -- Peak in fp32 without TF32, FLOP/s; NULL as above.
  fp32_flops_per_s DOUBLE,
  -- Peak in fp8, FLOP/s; NULL as above.
  fp8_flops_per_s DOUBLE,
  -- Peak of the device's memory, bytes/s; NULL as above.
  memory_bytes_per_s DOUBLE,
  -- What it can send to the other devices of its host in one direction, bytes/s; NULL as above.
  link_bytes_per_s DOUBLE,
  -- How many devices of its host a group has to have at least to use all of that; NULL as above.
  link_devices INTEGER,
  -- Whether Python stacks were recorded, which slows the host.
  records_stacks BOOLEAN NOT NULL,
  -- Document that states the peaks, or that the user does; NULL where there are none.
  source VARCHAR
)
