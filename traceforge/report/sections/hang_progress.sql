-- How far each rank got in each process group with a call that had not ended; the group of the blocked call first.
WITH pending AS (
  SELECT
    progress.group_id,
    SUM(progress.pending_count) AS pending_count
  FROM fabric.group_progress AS progress
  WHERE progress.run_id = $run_id
  GROUP BY progress.group_id
  HAVING SUM(progress.pending_count) > 0
    OR MIN(progress.last_enqueued) <> MAX(progress.last_enqueued)
)
SELECT
  process_group.group_id,
  COALESCE(process_group.description, 'process group ' || process_group.name) AS known_as,
  process_group.ranks AS members,
  process_group.has_messages,
  member.rank,
  progress.last_enqueued,
  progress.last_started,
  progress.last_completed,
  progress.pending_count,
  MAX(progress.last_enqueued) OVER (PARTITION BY process_group.group_id) AS furthest_enqueued,
  MAX(progress.last_completed) OVER (PARTITION BY process_group.group_id) AS furthest_completed,
  COALESCE(LIST_CONTAINS(hang.ranks, member.rank), false) AS holds_up
FROM fabric.process_group AS process_group
JOIN pending
  ON pending.group_id = process_group.group_id
CROSS JOIN LATERAL (
  SELECT UNNEST(COALESCE(
    process_group.ranks,
    (SELECT LIST(own.rank ORDER BY own.rank)
     FROM fabric.group_progress AS own
     WHERE own.run_id = process_group.run_id AND own.group_id = process_group.group_id)
  )) AS rank
) AS member
LEFT JOIN fabric.group_progress AS progress
  ON progress.run_id = process_group.run_id
  AND progress.group_id = process_group.group_id
  AND progress.rank = member.rank
LEFT JOIN fabric.hang AS hang
  ON hang.run_id = process_group.run_id
  AND hang.place = 0
WHERE process_group.run_id = $run_id
ORDER BY
  COALESCE(process_group.group_id = hang.group_id, false) DESC,
  LIST_HAS_ANY(process_group.ranks, hang.ranks) DESC NULLS LAST,
  pending.pending_count DESC,
  process_group.group_id,
  member.rank
