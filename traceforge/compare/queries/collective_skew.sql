-- From the first arrival to the last of complete collectives by op, size class and ranks in each judged iteration, sum over the calls of a rank, mean over the ranks that take part, ns.
WITH judged AS (
  SELECT run_id, iteration
  FROM timeline.iteration
  WHERE run_id = $run_id AND NOT is_warmup AND NOT is_partial
),
joined AS (
  SELECT
    c.iteration,
    a.rank,
    c.skew_ns,
    FORMAT(
      '{}/{}/{}', COALESCE(c.op, 'unknown'),
      COALESCE(CAST(CAST(POW(2, FLOOR(LOG2(NULLIF(c.size_bytes, 0)))) AS BIGINT) AS VARCHAR), ''), k.size
    ) AS name
  FROM timeline.collective AS c
  JOIN timeline.communicator AS k USING (run_id, communicator_id)
  JOIN timeline.arrival AS a USING (run_id, collective_id)
  SEMI JOIN judged AS j ON c.run_id = j.run_id AND c.iteration = j.iteration
  WHERE c.complete
),
members AS (
  SELECT name, COUNT(DISTINCT rank) AS ranks
  FROM joined
  GROUP BY name
)
SELECT
  c.iteration,
  name,
  SUM(c.skew_ns) / ANY_VALUE(m.ranks) AS value
FROM joined AS c
JOIN members AS m USING (name)
GROUP BY c.iteration, name
ORDER BY c.iteration, name
