-- When each rank reached each collective. One row a (collective, rank); unmatched calls are absent, see meta.issue.
--
-- A rank that comes late to a broadcast, or to another collective with a root, may find others gone that have not waited
-- for it. Ranks that were in it together are a collective of their own here; those that left before the last one came
-- have a number of their own.
-- Scope: iteration
CREATE OR REPLACE TABLE timeline.arrival (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins timeline.collective.collective_id.
  collective_id,
  -- Joins align.match.collective_id: another number than collective_id where ranks left before the last one came.
  match_id,
  -- Iteration in which the rank's host issued it; NULL outside of all iterations.
  iteration,
  -- Global rank.
  rank,
  -- Arrival on the aligned clock, ns.
  arrival_ns,
  -- End on this rank on the aligned clock, ns; of a host's send, no later than the other rank had it.
  end_ns,
  -- Lateness against the first arriver, ns, >= 0; NULL where this is the only one of several members whose trace takes
  -- part. Members without a trace may have come earlier still.
  late_ns,
  -- Time from this rank's arrival until the last arriver came, or until its own end if that is earlier, ns, >= 0; NULL as
  -- above. Where timeline.collective is not complete, members without a trace may have come later still.
  wait_ns,
  -- True where the lateness is below three clock residuals of the ranks compared: it supports no finding.
  below_resolution,
  -- True where the wait is below three clock residuals of the ranks compared: it supports no finding.
  wait_below_resolution,
  -- When the host issued the call, on the aligned clock, ns.
  issue_ns,
  -- Joins align.call.call_id within the rank.
  call_id,
  -- When the call's record ends on this rank, aligned clock, ns: a host's send is recorded until the host asks for it.
  recorded_end_ns
) AS
WITH called AS (
  SELECT
    m.run_id, m.collective_id AS match_id, m.is_rooted, m.rank, m.call_id, c.raw_issue_ns, c.raw_arrival_ns, c.raw_end_ns,
    g.size = 1 AND g.origin <> 'unknown' AS is_alone,
    -- Who receives in the same call is blocked until that is there.
    m.direction IS NOT DISTINCT FROM 'send' AND NOT c.on_device AS is_host_send,
    CASE WHEN c.raw_issue_ns < s.raw_end_ns THEN s.iteration END AS iteration,
    k.residual_ns
  FROM align.match AS m
  JOIN align.call AS c USING (run_id, rank, call_id)
  JOIN align.clock AS k USING (run_id, rank)
  JOIN align.communicator AS g USING (run_id, communicator_id)
  ASOF LEFT JOIN align.step AS s ON s.run_id = c.run_id AND s.rank = c.rank AND c.raw_issue_ns >= s.raw_start_ns
  WHERE k.offset_ns IS NOT NULL
),
placed AS (
  SELECT
    c.run_id, c.match_id, c.is_rooted, c.rank, c.call_id, c.iteration, c.residual_ns, c.is_alone, c.is_host_send,
    c.raw_issue_ns - align.ahead_ns(c.raw_issue_ns, i) AS issue_ns,
    c.raw_arrival_ns - align.ahead_ns(c.raw_arrival_ns, a) AS arrival_ns,
    c.raw_end_ns - align.ahead_ns(c.raw_end_ns, e) AS recorded_end_ns
  FROM called AS c
  ASOF JOIN align.clock_piece AS i ON i.run_id = c.run_id AND i.rank = c.rank AND c.raw_issue_ns >= i.raw_from_ns
  ASOF JOIN align.clock_piece AS a ON a.run_id = c.run_id AND a.rank = c.rank AND c.raw_arrival_ns >= a.raw_from_ns
  ASOF JOIN align.clock_piece AS e ON e.run_id = c.run_id AND e.rank = c.rank AND c.raw_end_ns >= e.raw_from_ns
),
rooted AS (
  SELECT run_id, match_id, rank, arrival_ns, recorded_end_ns + (
      SELECT value FROM meta.threshold WHERE name = 'align.RESOLUTION_RESIDUALS'
    ) * MAX(residual_ns) OVER members AS surely_gone_ns,
    MAX(arrival_ns) OVER members AS last_arrival_ns
  FROM placed
  WHERE is_rooted
  WINDOW members AS (PARTITION BY run_id, match_id)
),
left_early AS (
  -- Ranks that were gone when the last one came, by the last arrival that they may have seen.
  SELECT l.run_id, l.match_id, l.rank,
    DENSE_RANK() OVER (PARTITION BY l.run_id ORDER BY l.match_id, r.arrival_ns) AS number
  FROM rooted AS l
  ASOF JOIN (SELECT run_id, match_id, arrival_ns FROM rooted) AS r
    ON r.run_id = l.run_id AND r.match_id = l.match_id AND l.surely_gone_ns >= r.arrival_ns
  WHERE l.last_arrival_ns > l.surely_gone_ns
),
numbered AS (
  SELECT p.*, COALESCE(i.last_id + l.number, p.match_id) AS collective_id, s.match_id IS NOT NULL AS is_parted
  FROM placed AS p
  LEFT JOIN left_early AS l USING (run_id, match_id, rank)
  LEFT JOIN (SELECT DISTINCT run_id, match_id FROM left_early) AS s USING (run_id, match_id)
  LEFT JOIN (SELECT run_id, MAX(collective_id) AS last_id FROM align.match GROUP BY run_id) AS i USING (run_id)
),
compared AS (
  SELECT
    n.*,
    CASE WHEN is_host_send
      THEN GREATEST(MIN(recorded_end_ns) OVER collective, LEAST(MAX(arrival_ns) OVER collective, recorded_end_ns))
      ELSE recorded_end_ns
    END AS end_ns,
    MIN(arrival_ns) OVER collective AS first_arrival_ns,
    MAX(arrival_ns) OVER collective AS last_arrival_ns,
    COUNT(*) OVER collective > 1 OR is_alone OR is_parted AS is_compared,
    (SELECT value FROM meta.threshold WHERE name = 'align.RESOLUTION_RESIDUALS')
      * MAX(residual_ns) OVER collective AS resolution_ns
  FROM numbered AS n
  WINDOW collective AS (PARTITION BY run_id, collective_id)
)
SELECT
  run_id, collective_id, match_id, iteration, rank, arrival_ns, end_ns,
  CASE WHEN is_compared THEN arrival_ns - first_arrival_ns END,
  CASE WHEN is_compared THEN GREATEST(0, LEAST(last_arrival_ns, end_ns) - arrival_ns) END,
  arrival_ns - first_arrival_ns < resolution_ns OR NOT is_compared,
  GREATEST(0, LEAST(last_arrival_ns, end_ns) - arrival_ns) < resolution_ns OR NOT is_compared,
  issue_ns,
  call_id,
  recorded_end_ns
FROM compared
ORDER BY run_id, collective_id, rank
