-- The clocks of each host: the least certain residual of its ranks, and the fewest anchors.
SELECT
  host,
  COUNT(*) AS ranks,
  MIN(offset_ns) AS least_offset_ns,
  MAX(offset_ns) AS greatest_offset_ns,
  MAX(residual_ns) AS residual_ns,
  MIN(anchors) AS anchors
FROM align.clock
WHERE run_id = $run_id
GROUP BY host
ORDER BY residual_ns DESC NULLS FIRST, host
