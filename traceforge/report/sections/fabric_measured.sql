-- What NCCL's Inspector measured, by communicator, operation and size; the transfer is the shortest time of a rank.
WITH last_arrivals AS (
  SELECT comm_hash, op, size_bytes, COALESCE(last_global_rank, last_rank) AS rank, last_global_rank IS NULL AS is_local,
    COUNT(*) AS times
  FROM fabric.measured
  WHERE run_id = $run_id AND last_rank IS NOT NULL
  GROUP BY ALL
)
SELECT
  measured.comm_hash,
  measured.rank_count,
  measured.op,
  measured.size_bytes,
  COUNT(*) AS calls,
  COUNT(*) FILTER (WHERE measured.member_count = measured.rank_count) AS complete,
  CAST(MEDIAN(measured.transfer_ns) AS BIGINT) AS transfer_ns,
  CAST(QUANTILE_CONT(measured.transfer_ns, 0.95) AS BIGINT) AS slow_transfer_ns,
  CAST(MEDIAN(measured.skew_ns) AS BIGINT) AS skew_ns,
  CAST(MEDIAN(measured.bus_bandwidth_bytes_per_s) AS BIGINT) AS bandwidth_bytes_per_s,
  MIN(often.rank) AS last_rank,
  COALESCE(BOOL_OR(often.is_local), FALSE) AS is_local,
  MIN(often.times) AS last_times
FROM fabric.measured
LEFT JOIN (
  SELECT comm_hash, op, size_bytes, ARG_MAX(rank, (times, -rank)) AS rank, BOOL_OR(is_local) AS is_local,
    MAX(times) AS times
  FROM last_arrivals
  GROUP BY comm_hash, op, size_bytes
) AS often
  ON often.comm_hash = measured.comm_hash AND often.op = measured.op AND often.size_bytes = measured.size_bytes
WHERE measured.run_id = $run_id
GROUP BY measured.comm_hash, measured.rank_count, measured.op, measured.size_bytes
ORDER BY SUM(measured.longest_ns) DESC, measured.comm_hash, measured.op, measured.size_bytes
