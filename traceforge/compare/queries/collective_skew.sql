-- From the first arrival to the last of complete collectives by op, size class and ranks in each judged iteration, sum over the calls, ns.
SELECT
  c.iteration,
  FORMAT(
    '{}/{}/{}', COALESCE(c.op, 'unknown'),
    COALESCE(CAST(CAST(POW(2, FLOOR(LOG2(NULLIF(c.size_bytes, 0)))) AS BIGINT) AS VARCHAR), ''), k.size
  ) AS name,
  CAST(SUM(c.skew_ns) AS DOUBLE) AS value
FROM timeline.collective AS c
JOIN timeline.communicator AS k USING (run_id, communicator_id)
JOIN timeline.iteration AS i USING (run_id, iteration)
WHERE c.run_id = $run_id AND c.complete AND NOT i.is_warmup AND NOT i.is_partial
GROUP BY ALL
ORDER BY c.iteration, name
