-- Operations and kernels with most time, of a mean iteration of a mean rank; overlapping kernels each count.
WITH judged AS (
  SELECT COUNT(*) AS iterations FROM operation.judged_iteration WHERE run_id = $run_id
),
recorded AS (
  SELECT COUNT(DISTINCT rank) AS ranks, SUM(duration_ns) AS all_ns FROM operation.kernel WHERE run_id = $run_id
)
SELECT
  k.operation,
  k.kernel,
  k.kind,
  COUNT(DISTINCT k.shapes) AS shapes,
  SUM(k.calls) / ANY_VALUE(j.iterations) / ANY_VALUE(r.ranks) AS calls,
  SUM(k.duration_ns) / ANY_VALUE(j.iterations) / ANY_VALUE(r.ranks) AS duration_ns,
  SUM(k.duration_ns) / ANY_VALUE(r.all_ns) AS share,
  SUM(k.duration_ns) / SUM(k.calls) AS call_ns,
  SUM(k.flops) * 1e9 / NULLIF(SUM(k.duration_ns) FILTER (WHERE k.flops IS NOT NULL), 0) AS flops_per_s,
  SUM(k.arithmetic_duration_ns)
    / NULLIF(SUM(k.duration_ns) FILTER (WHERE k.arithmetic_duration_ns IS NOT NULL), 0) AS peak_share
FROM operation.kernel AS k
CROSS JOIN judged AS j
CROSS JOIN recorded AS r
WHERE k.run_id = $run_id
GROUP BY k.operation, k.kernel, k.kind
ORDER BY SUM(k.duration_ns) DESC, k.operation NULLS LAST, k.kernel NULLS LAST
LIMIT 200
