-- Matrix products by shape: calls and time over all ranks, achieved TFLOP/s, share of the device's peak.
SELECT k.run_id, k.operation, k.shapes, k.dtype, SUM(k.operation_calls) AS calls, SUM(k.duration_ns) / 1e6 AS ms,
  SUM(k.duration_ns) / SUM(SUM(k.duration_ns)) OVER (PARTITION BY k.run_id) AS share_of_these,
  SUM(k.flops) / SUM(k.duration_ns) / 1e3 AS tflops_per_s,
  SUM(k.arithmetic_duration_ns) / SUM(k.duration_ns) AS share_of_peak, ANY_VALUE(k.bound) AS bound,
  ARG_MAX(k.kernel, k.duration_ns) AS kernel
FROM operation.kernel AS k
WHERE k.kind = 'matrix_product'
GROUP BY k.run_id, k.operation, k.shapes, k.dtype
QUALIFY ROW_NUMBER() OVER (PARTITION BY k.run_id ORDER BY ms DESC, k.operation, k.shapes) <= 50
ORDER BY k.run_id, ms DESC, k.operation, k.shapes
