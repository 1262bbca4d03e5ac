-- Delay of a mean iteration by failure mode, cause and culprit: culprits of a twentieth of all delay alone, others summed.
-- Ranks that a finding blames together (a host, ranks that are slow alike) are one culprit.
WITH counted AS (
  SELECT
    COUNT(*) AS iterations,
    SUM(reference_ns + excess_ns) / COUNT(*) AS duration_ns,
    SUM(excess_ns) / COUNT(*) AS excess_ns
  FROM attribute.excess
  JOIN timeline.iteration USING (run_id, iteration)
  WHERE run_id = $run_id
    AND NOT is_warmup
),
together AS (
  SELECT mode, cause, finding_id, subject_kind || ' ' || subject AS subject, UNNEST(ranks) AS rank
  FROM attribute.finding
  WHERE run_id = $run_id
    AND subject_kind IN ('host', 'stage', 'ranks')
    AND confidence <> 'low'
),
paths AS (
  SELECT mode, cause, finding_id, subject_kind || ' ' || subject AS subject, subject AS path
  FROM attribute.finding
  WHERE run_id = $run_id
    AND subject_kind IN ('communicator', 'link')
    AND confidence <> 'low'
),
ledger AS (
  SELECT
    delay.mode,
    delay.cause,
    CASE WHEN together.finding_id IS NULL THEN delay.rank END AS rank,
    COALESCE(together.finding_id, paths.finding_id) AS finding_id,
    COALESCE(together.subject, paths.subject) AS subject,
    SUM(delay.delay_ns) / ANY_VALUE(counted.iterations) AS delay_ns,
    -- What no cause owns stands at the end; a credit of its own name is kept apart.
    delay.mode = 'unexplained' AND (delay.cause = 'unexplained' OR SUM(delay.delay_ns) >= 0) AS is_unexplained
  FROM attribute.delay AS delay
  JOIN timeline.iteration AS iteration
    ON iteration.run_id = delay.run_id AND iteration.iteration = delay.iteration AND NOT iteration.is_warmup
  CROSS JOIN counted
  LEFT JOIN together
    ON together.mode = delay.mode AND together.cause = delay.cause AND together.rank = delay.rank
  LEFT JOIN paths
    ON paths.mode = delay.mode AND paths.cause = delay.cause
    AND paths.path IN (CAST(delay.communicator_id AS VARCHAR), delay.low_rank || ', ' || delay.high_rank)
  WHERE delay.run_id = $run_id
  GROUP BY delay.mode, delay.cause, 3, 4, 5
),
weighed AS (
  SELECT
    *,
    NOT is_unexplained AND ABS(delay_ns) >= (
      SELECT value FROM meta.threshold WHERE name = 'report.LEAST_CULPRIT_SHARE'
    ) * SUM(ABS(delay_ns)) OVER () AS is_heavy,
    ROW_NUMBER() OVER (ORDER BY is_unexplained, ABS(delay_ns) DESC, mode, cause, rank NULLS FIRST, finding_id) AS place
  FROM ledger
)
SELECT
  weighed.mode,
  CASE WHEN weighed.is_unexplained THEN 'unexplained' ELSE weighed.cause END AS shown_cause,
  weighed.is_unexplained,
  weighed.is_heavy AND weighed.place <= 7 AS is_alone,
  MIN(weighed.rank) AS rank,
  MIN(weighed.subject) FILTER (WHERE weighed.is_heavy AND weighed.place <= 7) AS subject,
  COUNT(DISTINCT weighed.rank) AS ranks,
  SUM(weighed.delay_ns) AS delay_ns,
  SUM(weighed.delay_ns) / ANY_VALUE(counted.duration_ns) AS share,
  SUM(weighed.delay_ns) / NULLIF(ANY_VALUE(GREATEST(counted.excess_ns, 0)), 0) AS share_of_delay
FROM weighed
CROSS JOIN counted
GROUP BY
  weighed.mode, shown_cause, weighed.is_unexplained, is_alone,
  CASE WHEN weighed.is_heavy AND weighed.place <= 7 THEN weighed.place END
ORDER BY is_unexplained, delay_ns DESC, weighed.mode, shown_cause, rank NULLS FIRST
