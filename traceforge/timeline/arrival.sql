-- When each rank reached each collective. One row a (collective, rank); unmatched calls are absent, see meta.issue.
--
-- In a broadcast a rank that comes late finds the others gone, and nobody has waited for it. Ranks that were in it
-- together are a collective of their own here: those that left before the last one came have a number of their own.
-- Scope: iteration
CREATE OR REPLACE TABLE timeline.arrival (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins timeline.collective.collective_id.
  collective_id,
  -- Joins align.match.collective_id: another number than collective_id for who left a broadcast before others came.
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
    m.run_id, m.collective_id AS match_id, m.is_from_root, m.rank, m.call_id, c.raw_issue_ns, c.raw_arrival_ns, c.raw_end_ns,
    g.size = 1 AND g.origin <> 'unknown' AS is_alone,
    c.op = 'send' AND NOT c.on_device AS is_host_send,
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
    c.run_id, c.match_id, c.is_from_root, c.rank, c.call_id, c.iteration, c.residual_ns, c.is_alone, c.is_host_send,
    c.raw_issue_ns - align.ahead_ns(c.raw_issue_ns, i) AS issue_ns,
    c.raw_arrival_ns - align.ahead_ns(c.raw_arrival_ns, a) AS arrival_ns,
    c.raw_end_ns - align.ahead_ns(c.raw_end_ns, e) AS recorded_end_ns
  FROM called AS c
  ASOF JOIN align.clock_piece AS i ON i.run_id = c.run_id AND i.rank = c.rank AND c.raw_issue_ns >= i.raw_from_ns
  ASOF JOIN align.clock_piece AS a ON a.run_id = c.run_id AND a.rank = c.rank AND c.raw_arrival_ns >= a.raw_from_ns
  ASOF JOIN align.clock_piece AS e ON e.run_id = c.run_id AND e.rank = c.rank AND c.raw_end_ns >= e.raw_from_ns
),
left_early AS (
  -- Of a broadcast: ranks whose end another one's arrival follows, by the last arrival before that end.
  SELECT b.run_id, b.match_id, b.rank,
    DENSE_RANK() OVER (PARTITION BY b.run_id ORDER BY b.match_id, o.arrival_ns) AS number
  FROM (
    SELECT *, MAX(arrival_ns) OVER (PARTITION BY run_id, match_id) AS last_arrival_ns FROM placed WHERE is_from_root
  ) AS b
  ASOF JOIN (SELECT run_id, match_id, arrival_ns FROM placed WHERE is_from_root) AS o
    ON o.run_id = b.run_id AND o.match_id = b.match_id AND b.recorded_end_ns >= o.arrival_ns
  WHERE b.last_arrival_ns > b.recorded_end_ns
),
numbered AS (
  SELECT p.*,
    COALESCE(MAX(p.match_id) OVER (PARTITION BY p.run_id) + e.number, p.match_id) AS collective_id,
    COUNT(*) OVER (PARTITION BY p.run_id, p.match_id) > 1 OR is_alone AS is_compared
  FROM placed AS p
  LEFT JOIN left_early AS e USING (run_id, match_id, rank)
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
