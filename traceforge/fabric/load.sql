-- How fast each communicator moved each kind of collective: one row per (communicator, operation, size).
-- Scope: run
CREATE OR REPLACE TABLE fabric.load (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins timeline.communicator.communicator_id.
  communicator_id,
  -- Operation; NULL when unknown.
  op,
  -- Bytes of each collective; NULL when unknown.
  size_bytes,
  -- Number of collectives.
  collectives,
  -- First quartile of the transfer time, ns: the undisturbed time.
  reference_transfer_ns,
  -- Median transfer time, ns.
  median_transfer_ns,
  -- 95 % point of the transfer time, ns.
  p95_transfer_ns,
  -- Median bus bandwidth by NCCL's definition, bytes/s; NULL when the size is unknown.
  median_bus_bandwidth_bytes_per_s,
  -- Median spread of arrivals, ns.
  median_skew_ns
) AS
SELECT
  run_id, communicator_id, op, size_bytes,
  COUNT(*),
  CAST(QUANTILE_DISC(transfer_ns, 0.25) AS BIGINT),
  CAST(QUANTILE_DISC(transfer_ns, 0.5) AS BIGINT),
  CAST(QUANTILE_DISC(transfer_ns, 0.95) AS BIGINT),
  MEDIAN(bus_bandwidth_bytes_per_s),
  CAST(QUANTILE_DISC(skew_ns, 0.5) AS BIGINT)
FROM timeline.collective
GROUP BY run_id, communicator_id, op, size_bytes
ORDER BY run_id, communicator_id, op, size_bytes
