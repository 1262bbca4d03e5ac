-- Bus bandwidth factor of each operation for each communicator size that occurs (see align/collective_names.toml).
-- Scope: run
-- Reads: align.communicator
CREATE OR REPLACE TABLE align.bus_factor (
  -- Operation, such as all_reduce.
  op VARCHAR NOT NULL,
  -- Number of ranks.
  size BIGINT NOT NULL,
  -- Bus bandwidth = size_bytes x bus_factor / time.
  bus_factor DOUBLE NOT NULL
)
