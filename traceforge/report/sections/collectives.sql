-- Collectives by group of ranks, operation and size, over the iterations that count (else all); slowest in total first.
WITH used AS (
  SELECT iteration
  FROM timeline.iteration
  WHERE run_id = $run_id
  QUALIFY NOT is_warmup AND NOT is_partial OR COUNT_IF(NOT is_warmup AND NOT is_partial) OVER () = 0
),
waits AS (
  SELECT
    collective_id,
    AVG(wait_ns) AS wait_ns
  FROM timeline.arrival
  WHERE run_id = $run_id
  GROUP BY collective_id
)
SELECT
  COALESCE(NULLIF(communicator.description, ''), NULLIF(communicator.name, ''), 'unnamed') AS group_name,
  communicator.size AS ranks,
  COUNT(DISTINCT collective.communicator_id) AS communicators,
  collective.op,
  collective.size_bytes,
  collective.dtype,
  COUNT(DISTINCT collective.match_id) AS calls,
  COUNT(DISTINCT collective.match_id) FILTER (collective.complete) AS complete,
  MEDIAN(collective.transfer_ns) AS transfer_ns,
  MEDIAN(collective.skew_ns) AS skew_ns,
  MEDIAN(collective.bus_bandwidth_bytes_per_s) AS bandwidth_bytes_per_s,
  QUANTILE_CONT(collective.bus_bandwidth_bytes_per_s, 0.05) AS low_bandwidth_bytes_per_s,
  QUANTILE_CONT(collective.bus_bandwidth_bytes_per_s, 0.95) AS high_bandwidth_bytes_per_s,
  MEDIAN(waits.wait_ns) AS wait_ns,
  CAST(SUM(collective.transfer_ns) AS BIGINT) AS total_transfer_ns,
  CAST(SUM(collective.skew_ns) AS BIGINT) AS total_skew_ns
FROM timeline.collective AS collective
JOIN used
  ON used.iteration = collective.iteration
LEFT JOIN timeline.communicator AS communicator
  ON communicator.run_id = collective.run_id
  AND communicator.communicator_id = collective.communicator_id
LEFT JOIN waits
  ON waits.collective_id = collective.collective_id
WHERE collective.run_id = $run_id
GROUP BY group_name, communicator.size, collective.op, collective.size_bytes, collective.dtype
ORDER BY
  total_transfer_ns + total_skew_ns DESC NULLS LAST,
  group_name,
  ranks,
  collective.op,
  collective.size_bytes,
  collective.dtype
