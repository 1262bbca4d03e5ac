-- Work against the device's limits: FLOPs a byte, achieved and attainable TFLOP/s, GB/s, and which limit is near.
SELECT k.run_id, COALESCE(k.operation, k.kernel) AS name, k.shapes, d.device, SUM(k.duration_ns) / 1e6 AS ms,
  SUM(k.flops) / SUM(k.bytes) AS flops_a_byte, SUM(k.flops) / SUM(k.duration_ns) / 1e3 AS tflops_per_s,
  SUM(k.flops) / SUM(GREATEST(k.arithmetic_duration_ns, k.memory_duration_ns)) / 1e3 AS attainable_tflops_per_s,
  SUM(k.bytes) / SUM(k.duration_ns) AS gb_per_s,
  SUM(GREATEST(k.arithmetic_duration_ns, k.memory_duration_ns)) / SUM(k.duration_ns) AS share_of_attainable,
  ANY_VALUE(k.bound) AS bound
FROM operation.kernel AS k
JOIN operation.device AS d USING (run_id, rank)
WHERE k.bound IS NOT NULL
GROUP BY k.run_id, COALESCE(k.operation, k.kernel), k.shapes, d.device
QUALIFY ROW_NUMBER() OVER (PARTITION BY k.run_id ORDER BY ms DESC, name, k.shapes) <= 50
ORDER BY k.run_id, ms DESC, name, k.shapes
