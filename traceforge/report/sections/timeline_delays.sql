-- Who owns the time lost in each iteration: a rank's cause, the transfers of a group, or nobody.
-- Ranks that a finding blames together (a stage, a host, ranks that are slow alike) are one owner.
WITH together AS (
  SELECT mode, cause, UNNEST(ranks) AS rank, NULL AS communicator_id, NULL AS path,
    CASE subject_kind WHEN 'ranks' THEN 'ranks ' ELSE subject_kind || ' ' END || subject AS subject
  FROM attribute.finding
  WHERE run_id = $run_id AND subject_kind IN ('host', 'stage', 'ranks') AND confidence <> 'low'
  UNION ALL
  SELECT mode, cause, NULL, TRY_CAST(subject AS INTEGER), NULL, 'communicator ' || subject
  FROM attribute.finding
  WHERE run_id = $run_id AND subject_kind = 'communicator' AND confidence <> 'low'
  UNION ALL
  SELECT mode, cause, NULL, NULL, subject, 'link ' || subject
  FROM attribute.finding
  WHERE run_id = $run_id AND subject_kind = 'link' AND confidence <> 'low'
)
SELECT
  delay.iteration,
  delay.rank,
  delay.communicator_id,
  together.subject,
  delay.mode,
  delay.cause,
  CAST(SUM(delay.delay_ns) AS BIGINT) AS delay_ns
FROM attribute.delay AS delay
LEFT JOIN together
  ON together.mode = delay.mode
  AND together.cause = delay.cause
  AND together.rank IS NOT DISTINCT FROM delay.rank
  AND together.communicator_id IS NOT DISTINCT FROM
    CASE WHEN together.communicator_id IS NOT NULL THEN delay.communicator_id END
  AND (together.path IS NULL OR together.path = delay.low_rank || ', ' || delay.high_rank)
WHERE delay.run_id = $run_id
GROUP BY delay.iteration, delay.rank, delay.communicator_id, together.subject, delay.mode, delay.cause
HAVING SUM(delay.delay_ns) > 0
ORDER BY delay.iteration, delay.rank NULLS LAST, delay.communicator_id NULLS LAST, delay.mode, delay.cause
