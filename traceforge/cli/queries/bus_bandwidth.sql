-- Bus bandwidth reached inside a host and between hosts, by operation and size class (powers of two).
WITH spread AS (
  SELECT k.run_id, k.communicator_id,
    CASE
      WHEN COUNT(*) < ANY_VALUE(k.size) OR COUNT(r.host) < COUNT(*) THEN 'unknown'
      WHEN COUNT(DISTINCT r.host) = 1 THEN 'one host'
      ELSE 'between hosts'
    END AS reach
  FROM (SELECT run_id, communicator_id, size, UNNEST(ranks) AS rank FROM timeline.communicator) AS k
  JOIN align.rank AS r USING (run_id, rank)
  GROUP BY k.run_id, k.communicator_id
)
SELECT c.run_id, s.reach, c.op, CAST(POW(2, FLOOR(LOG2(c.size_bytes))) AS BIGINT) AS size_class_bytes,
  COUNT(*) AS collectives, MEDIAN(c.bus_bandwidth_bytes_per_s) / 1e9 AS median_gb_per_s,
  MAX(c.bus_bandwidth_bytes_per_s) / 1e9 AS best_gb_per_s, MEDIAN(c.transfer_ns) / 1e6 AS median_transfer_ms
FROM timeline.collective AS c
JOIN spread AS s USING (run_id, communicator_id)
WHERE c.size_bytes > 0
GROUP BY ALL
ORDER BY c.run_id, s.reach, c.op, size_class_bytes
