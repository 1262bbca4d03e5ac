-- Collectives by op, size class and ranks: mean calls and bytes of a rank that takes part, in a judged iteration.
WITH judged AS (
  SELECT run_id, iteration
  FROM timeline.iteration
  WHERE run_id = $run_id AND NOT is_warmup AND NOT is_partial
)
SELECT
  FORMAT(
    '{}/{}/{}', COALESCE(c.op, 'unknown'),
    COALESCE(CAST(CAST(POW(2, FLOOR(LOG2(NULLIF(c.size_bytes, 0)))) AS BIGINT) AS VARCHAR), ''), k.size
  ) AS name,
  COUNT(*) / COUNT(DISTINCT a.rank) / (SELECT COUNT(*) FROM judged) AS calls,
  SUM(c.size_bytes) / COUNT(DISTINCT a.rank) / (SELECT COUNT(*) FROM judged) AS size_bytes
FROM timeline.collective AS c
JOIN timeline.communicator AS k USING (run_id, communicator_id)
JOIN timeline.arrival AS a USING (run_id, collective_id)
SEMI JOIN judged AS j ON c.run_id = j.run_id AND c.iteration = j.iteration
GROUP BY ALL
ORDER BY name
