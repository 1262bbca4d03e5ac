-- Flight recorders disagree on how far a process group got: the ranks that are behind never entered the collective.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: According to the flight recorders, process group {subject} has enqueued collective {furthest} on some ranks,
--   while {stopped} {behind} stopped at {slowest}.
-- Next step: Look at the stacks of the ranks that are behind (raw.flight_recorder_entry.stack: their last calls).
WITH progress AS (
  SELECT s.run_id, s.source_id, s.rank, g.process_group_name, g.description, MAX(g.last_enqueued) AS last_enqueued
  FROM raw.flight_recorder_group AS g
  JOIN meta.source AS s USING (source_id)
  WHERE g.last_enqueued >= 0 AND s.rank IS NOT NULL
  GROUP BY s.run_id, s.source_id, s.rank, g.process_group_name, g.description
),
compared AS (
  SELECT *, MAX(last_enqueued) OVER (PARTITION BY run_id, process_group_name) AS furthest FROM progress
)
SELECT
  run_id, 'communicator' AS subject_kind, COALESCE(NULLIF(MIN(description), ''), process_group_name) AS subject,
  MAX(furthest) AS furthest, MIN(last_enqueued) AS slowest,
  LIST(rank) FILTER (WHERE last_enqueued < furthest) AS ranks,
  LIST(rank) FILTER (WHERE last_enqueued < furthest) AS behind,
  CASE COUNT(*) FILTER (WHERE last_enqueued < furthest) WHEN 1 THEN 'rank' ELSE 'ranks' END AS stopped,
  'flight recorder' AS basis,
  -- A flight recorder's dump has no lines.
  MIN((source_id, 1)) FILTER (WHERE last_enqueued < furthest) AS first,
  COUNT(*) FILTER (WHERE last_enqueued < furthest) AS citation_count
FROM compared
GROUP BY run_id, process_group_name
HAVING COUNT(*) FILTER (WHERE last_enqueued < furthest) > 0
