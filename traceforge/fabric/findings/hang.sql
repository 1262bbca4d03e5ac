-- A collective timed out in PyTorch's watchdog; the ranks that had not even enqueued it are the suspects.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: Collective {subject} ({op}) timed out on {victims:count rank}: {verdict}.
-- Next step: Look at the stacks of the ranks that never entered it (py-spy dump, the flight recorder), not at those
--   that waited.
WITH event AS (
  SELECT s.run_id, COALESCE(w.process_group_name, CAST(w.process_group_id AS VARCHAR), '') AS group_name, w.event,
    w.sequence, w.op, w.rank, w.last_enqueued, w.source_id, r.line
  FROM raw.nccl_watchdog AS w
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN meta.source AS s USING (source_id)
),
progress AS (
  SELECT run_id, group_name, rank, MAX(last_enqueued) AS last_enqueued
  FROM event
  WHERE event = 'progress'
  GROUP BY run_id, group_name, rank
),
timeout AS (
  -- The first collective of each group that timed out; later ones follow from it.
  SELECT run_id, group_name, sequence, MIN(op) AS op, COUNT(DISTINCT rank) AS victims,
    MIN((source_id, line)) AS first, COUNT(*) AS citation_count
  FROM event
  WHERE event = 'timeout'
  GROUP BY run_id, group_name, sequence
  QUALIFY ROW_NUMBER() OVER (PARTITION BY run_id, group_name ORDER BY sequence) = 1
),
behind AS (
  SELECT t.run_id, t.group_name, LIST(p.rank ORDER BY p.rank) AS ranks
  FROM timeout AS t
  JOIN progress AS p ON p.run_id = t.run_id AND p.group_name = t.group_name AND p.last_enqueued < t.sequence
  GROUP BY t.run_id, t.group_name
)
SELECT
  t.run_id, 'communicator' AS subject_kind,
  t.sequence || CASE WHEN t.group_name = '' THEN '' ELSE ' of process group ' || t.group_name END AS subject,
  t.op, t.victims, b.ranks,
  CASE
    WHEN b.ranks IS NULL THEN 'these logs do not show which rank is missing'
    ELSE CASE LEN(b.ranks) WHEN 1 THEN 'rank ' ELSE 'ranks ' END
      || ARRAY_TO_STRING(b.ranks, ', ') || ' never entered it'
  END AS verdict,
  'error message' AS basis, t.first, t.citation_count
FROM timeout AS t
LEFT JOIN behind AS b ON b.run_id = t.run_id AND b.group_name = t.group_name
