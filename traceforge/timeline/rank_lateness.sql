-- Who comes late: one row a rank, over the collectives that its iterations hold.
-- Scope: run
CREATE OR REPLACE VIEW timeline.rank_lateness (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Collectives in which it took part.
  collectives,
  -- Of these, those at which it arrived last by more than the clocks' resolution.
  last_count,
  -- Median lateness against the first arriver, ns.
  median_late_ns,
  -- Lateness that one in twenty collectives exceeds, ns.
  p95_late_ns,
  -- Time that this rank waited for others, ns.
  total_wait_ns,
  -- Time that all other ranks waited while this one alone was missing, ns: from the last but one arrival to its own.
  caused_wait_ns
) AS
WITH ranked AS (
  SELECT a.*, c.last_rank, c.last_arrival_ns,
    COUNT(*) OVER collective AS members,
    MAX(a.arrival_ns) FILTER (WHERE a.rank <> c.last_rank) OVER collective AS last_but_one_ns
  FROM timeline.arrival AS a
  JOIN timeline.collective AS c USING (run_id, collective_id)
  WHERE a.iteration IS NOT NULL
  WINDOW collective AS (PARTITION BY a.run_id, a.collective_id)
)
SELECT
  run_id,
  rank,
  COUNT(*) AS collectives,
  COUNT(*) FILTER (WHERE rank = last_rank AND NOT below_resolution) AS last_count,
  CAST(MEDIAN(late_ns) AS BIGINT) AS median_late_ns,
  QUANTILE_DISC(late_ns, 0.95) AS p95_late_ns,
  CAST(SUM(wait_ns) AS BIGINT) AS total_wait_ns,
  CAST(COALESCE(
    SUM((members - 1) * (last_arrival_ns - last_but_one_ns)) FILTER (WHERE rank = last_rank AND members > 1), 0
  ) AS BIGINT) AS caused_wait_ns
FROM ranked
GROUP BY run_id, rank
ORDER BY run_id, rank
