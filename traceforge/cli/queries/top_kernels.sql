-- The kernels (on hosts: operations) that take longest: calls and time an iteration, mean over ranks; spread over ranks.
WITH steps AS (
  SELECT run_id, COUNT(*) AS rank_iterations
  FROM timeline.rank_iteration JOIN operation.judged_iteration USING (run_id, iteration)
  GROUP BY run_id
),
by_rank AS (
  SELECT run_id, rank, COALESCE(kernel, operation) AS name, ANY_VALUE(kind) AS kind, SUM(calls) AS calls,
    SUM(duration_ns) AS duration_ns, MAX(p95_ns) AS p95_ns, SUM(flops) AS flops,
    SUM(duration_ns) FILTER (WHERE flops IS NOT NULL) AS modelled_ns
  FROM operation.kernel
  GROUP BY run_id, rank, name
)
SELECT b.run_id, b.name, ANY_VALUE(b.kind) AS kind, SUM(b.calls) / ANY_VALUE(s.rank_iterations) AS calls,
  SUM(b.duration_ns) / ANY_VALUE(s.rank_iterations) / 1e6 AS ms,
  SUM(b.duration_ns) / SUM(SUM(b.duration_ns)) OVER (PARTITION BY b.run_id) AS share,
  SUM(b.duration_ns) / SUM(b.calls) / 1e3 AS us_a_call, MAX(b.p95_ns) / 1e3 AS p95_us,
  SUM(b.flops) / SUM(b.modelled_ns) / 1e3 AS tflops_per_s, ARG_MAX(b.rank, b.duration_ns) AS slowest_rank
FROM by_rank AS b
JOIN steps AS s USING (run_id)
GROUP BY b.run_id, b.name
QUALIFY ROW_NUMBER() OVER (PARTITION BY b.run_id ORDER BY ms DESC, b.name) <= 50
ORDER BY b.run_id, ms DESC, b.name
