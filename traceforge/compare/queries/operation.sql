-- Time of each rank in each operation (kernel, where it has none), and by kernel, module and shapes; its calls and its
-- arithmetic, means over judged iterations, ns. Arithmetic is NULL where that of any part is not known.
WITH recorded AS (
  SELECT w.run_id, w.rank, COUNT(*) AS iterations
  FROM timeline.rank_iteration AS w
  JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY w.run_id, w.rank
),
lasting AS (
  -- A compiler numbers its kernels anew when any of them changes: the number is no part of the name from run to run.
  SELECT
    * REPLACE (
      REGEXP_REPLACE(operation, '^(triton_(?:poi|red|per|tem)_\w*?)_\d+\z', '\1') AS operation,
      REGEXP_REPLACE(kernel, '^(triton_(?:poi|red|per|tem)_\w*?)_\d+\z', '\1') AS kernel
    )
  FROM operation.kernel
),
work AS (
  SELECT
    k.rank, r.iterations, k.duration_ns, k.kernel, k.module, k.flops, k.operation_calls, k.calls AS kernel_calls,
    COALESCE(k.operation, k.kernel) AS operation,
    k.operation || ' ' || k.shapes AS shapes,
    CASE WHEN k.operation IS NULL OR k.joined = 'host' THEN k.calls ELSE k.operation_calls END AS calls
  FROM lasting AS k
  JOIN recorded AS r USING (run_id, rank)
  WHERE k.run_id = $run_id AND k.class NOT IN ('communication', 'communication_call', 'host_communication')
),
named AS (
  SELECT 'operation' AS level, operation AS name, calls AS own_calls, * FROM work
  UNION ALL
  SELECT 'kernel', kernel, kernel_calls, * FROM work WHERE kernel IS NOT NULL
  UNION ALL
  SELECT 'module', module, kernel_calls, * FROM work WHERE module IS NOT NULL
  UNION ALL
  SELECT 'shapes', shapes, calls, * FROM work WHERE shapes IS NOT NULL
)
SELECT
  rank,
  level,
  name,
  CAST(SUM(duration_ns) / MIN(iterations) AS DOUBLE) AS value,
  CAST(SUM(own_calls) / MIN(iterations) AS DOUBLE) AS calls,
  CASE WHEN COUNT(*) FILTER (WHERE flops IS NULL AND operation_calls > 0) = 0
    THEN CAST(SUM(flops) / MIN(iterations) AS DOUBLE) END AS flops
FROM named
GROUP BY rank, level, name
ORDER BY rank, level, name
