-- Kernels whose arithmetic and bytes are not known, by share of the device's time, with what would make them known.
WITH known AS (
  SELECT k.*, SUM(k.duration_ns) OVER (PARTITION BY k.run_id) AS all_ns,
    -- A kernel that helps a modelled operation is modelled with it.
    MAX(k.bytes) OVER (PARTITION BY k.run_id, k.rank, k.operation, k.shapes) IS NOT NULL
      OR MAX(k.flops) OVER (PARTITION BY k.run_id, k.rank, k.operation, k.shapes) IS NOT NULL AS is_known
  FROM operation.kernel AS k
  WHERE k.class = 'compute' AND k.joined <> 'host'
)
SELECT run_id, COALESCE(operation, kernel) AS name, ARG_MAX(kernel, duration_ns) AS kernel, joined,
  SUM(calls) AS calls, SUM(duration_ns) / 1e6 AS ms, SUM(duration_ns) / ANY_VALUE(all_ns) AS share_of_kernels,
  CASE
    WHEN joined = 'graph_launch' THEN 'a captured graph names no operation'
    WHEN joined <> 'operation' THEN 'the trace does not join it to an operation'
    WHEN COUNT(shapes) = 0 THEN 'no shapes of this operation are kept: record_shapes=True, or there is no rule for it'
    ELSE 'its inputs do not tell what it does'
  END AS why
FROM known
WHERE NOT is_known OR operation IS NULL
GROUP BY run_id, COALESCE(operation, kernel), joined
QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id ORDER BY ms DESC, name, joined) <= 50
ORDER BY run_id, ms DESC, name, joined
