-- Who owns the time lost in each iteration: a rank's cause, the transfers of a group, or nobody.
SELECT
  delay.iteration,
  delay.rank,
  delay.communicator_id,
  delay.mode,
  delay.cause,
  CAST(SUM(delay.delay_ns) AS BIGINT) AS delay_ns
FROM attribute.delay AS delay
WHERE delay.run_id = $run_id
GROUP BY delay.iteration, delay.rank, delay.communicator_id, delay.mode, delay.cause
HAVING SUM(delay.delay_ns) > 0
ORDER BY delay.iteration, delay.rank NULLS LAST, delay.communicator_id NULLS LAST, delay.mode, delay.cause
