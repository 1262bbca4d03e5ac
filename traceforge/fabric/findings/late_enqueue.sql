-- In logs with time stamps: a rank calls collectives later than the other ranks of its host, again and again.
-- Mode: synchronization_amplification
-- Severity: problem
-- Summary: Rank {subject} calls the collectives of communicator {communicator_id} {late_ms:.1f} ms later than the first
--   rank of its host (median of {calls} calls); the others are {others_ms:.1f} ms late.
-- Next step: Profile this rank's host code (data loading, logging, garbage collection): by the clock of the host, it is
--   the last to call.
WITH stamped AS (
  SELECT o.run_id, o.communicator_id, o.sequence, o.rank, m.global_rank, m.host, o.raw_time_ns, o.source_id, o.line
  FROM fabric.operation AS o
  JOIN fabric.member AS m
    ON m.run_id = o.run_id AND m.communicator_id = o.communicator_id AND m.rank = o.rank
  WHERE o.raw_time_ns IS NOT NULL AND o.op NOT IN ('send', 'recv')
),
late AS (
  SELECT *, raw_time_ns - MIN(raw_time_ns) OVER same AS late_ns, COUNT(*) OVER same AS ranks_here
  FROM stamped
  WINDOW same AS (PARTITION BY run_id, communicator_id, host, sequence)
),
by_rank AS (
  SELECT run_id, communicator_id, host, rank, MIN(global_rank) AS global_rank, COUNT(*) AS calls,
    MEDIAN(late_ns) AS late_ns, MIN((source_id, line)) AS first
  FROM late
  WHERE ranks_here > 1
  GROUP BY run_id, communicator_id, host, rank
),
compared AS (
  SELECT *, (SUM(late_ns) OVER same - late_ns) / NULLIF(COUNT(*) OVER same - 1, 0) AS others_ns,
    COUNT(*) OVER same AS ranks_here
  FROM by_rank
  WINDOW same AS (PARTITION BY run_id, communicator_id, host)
)
SELECT
  run_id, 'rank' AS subject_kind, COALESCE(global_rank, rank) AS subject, [COALESCE(global_rank, rank)] AS ranks,
  communicator_id, calls, late_ns / 1e6 AS late_ms, others_ns / 1e6 AS others_ms,
  'time stamps of calls on one host' AS basis, first, calls AS citation_count
FROM compared
WHERE calls >= (SELECT value FROM meta.threshold WHERE name = 'fabric.LEAST_STAMPED_CALLS')
  AND ranks_here >= (SELECT value FROM meta.threshold WHERE name = 'fabric.LEAST_RANKS_COMPARED')
  AND late_ns > (SELECT value FROM meta.threshold WHERE name = 'fabric.LEAST_LATE_NS')
  AND late_ns > (SELECT value FROM meta.threshold WHERE name = 'fabric.LATE_RATIO') * others_ns
