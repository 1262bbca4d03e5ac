-- Why the ranks of each stage idle: means over ranks and judged iterations but the first, by kind.
WITH judged AS (
  SELECT iteration
  FROM timeline.iteration
  WHERE run_id = $run_id AND NOT is_warmup AND NOT is_partial
  QUALIFY ROW_NUMBER() OVER (ORDER BY iteration) > 1 OR COUNT(*) OVER () = 1
)
SELECT
  r.stage, LIST(DISTINCT b.rank ORDER BY b.rank) AS ranks,
  AVG(b.duration_ns) FILTER (b.kind = 'fill') AS fill_ns,
  AVG(b.duration_ns) FILTER (b.kind = 'drain') AS drain_ns,
  AVG(b.duration_ns) FILTER (b.kind = 'imbalance') AS imbalance_ns,
  AVG(b.duration_ns) FILTER (b.kind = 'transfer') AS transfer_ns,
  AVG(b.duration_ns) FILTER (b.kind = 'launch') AS launch_ns,
  AVG(b.duration_ns) FILTER (b.kind = 'late_peer') AS late_peer_ns
FROM timeline.bubble AS b
JOIN judged USING (iteration)
JOIN timeline.role AS r ON r.run_id = b.run_id AND r.rank = b.rank
WHERE b.run_id = $run_id
GROUP BY r.stage
ORDER BY r.stage
