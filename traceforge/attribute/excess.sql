-- How much longer each iteration took than at reference durations. Iterations that are not in the graph, or not regular, are absent.
--
-- Reference durations are medians over ranks and iterations of the same place in the program, or what meta.analysis says
-- (of transfers, first quartiles). What the usual host needs beyond that by itself (attribute.host_pace) is part of the
-- reference. An iteration is reckoned from the last rank's start to the last rank's end; what precedes the last start
-- belongs to the iteration before, and is part of the reference here.
-- Scope: run
CREATE OR REPLACE TABLE attribute.excess (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number.
  iteration,
  -- Duration less the excess, ns.
  reference_ns,
  -- Time above the reference, ns; the iteration's rows of attribute.delay add up to it.
  excess_ns
) AS
WITH owned AS (
  SELECT run_id, iteration, CAST(SUM(delay_ns) AS BIGINT) AS excess_ns FROM attribute.delay GROUP BY ALL
),
replayed AS (
  SELECT DISTINCT w.run_id, w.iteration FROM graph.work AS w WHERE w.is_regular
)
SELECT i.run_id, i.iteration, i.duration_ns - COALESCE(o.excess_ns, 0), COALESCE(o.excess_ns, 0)
FROM timeline.iteration AS i
JOIN replayed AS r USING (run_id, iteration)
LEFT JOIN owned AS o USING (run_id, iteration)
WHERE NOT i.is_partial
ORDER BY i.run_id, i.iteration
