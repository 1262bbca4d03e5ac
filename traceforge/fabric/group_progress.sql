-- How far each rank got in each of its process groups, by its flight recorder dump: one row a group and rank.
-- A dump counts progress by numbers of its own; entries tell which group a number is. Where they do not, groups sorted by
-- name stand for numbers in ascending order: PyTorch counts both up as groups are made. That is used only where it
-- agrees with every entry of the run. In a group with messages a counter counts the rank's own, and calls are used.
-- Scope: run
CREATE OR REPLACE TABLE fabric.group_progress (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins fabric.process_group.group_id within the run.
  group_id,
  -- Global rank, a member of the group.
  rank,
  -- Joins meta.source.source_id: the rank's dump.
  source_id,
  -- Sequence number of the last call it enqueued, -1 before the first; NULL where the dump does not say.
  last_enqueued,
  -- Of the last one that started on its device; NULL where the dump does not say (starts are recorded on demand).
  last_started,
  -- Of the last one that ended on its device; NULL where the dump does not say.
  last_completed,
  -- Calls in the dump that had not ended, messages included.
  pending_count,
  -- counter where the dump's own counter of the group is known, calls where only its calls are.
  basis
) AS
WITH config AS (
  SELECT
    d.run_id, g.source_id, g.process_group_name AS name, TRY_CAST(g.process_group_name AS BIGINT) AS number,
    ROW_NUMBER() OVER (PARTITION BY g.source_id ORDER BY TRY_CAST(g.process_group_name AS BIGINT)) AS place,
    COUNT(*) OVER (PARTITION BY g.source_id) AS group_count
  FROM raw.flight_recorder_group AS g
  JOIN fabric.hang_dump AS d USING (source_id)
),
counter AS (
  SELECT
    p.*, ROW_NUMBER() OVER (PARTITION BY p.source_id ORDER BY p.process_group_id) AS place,
    COUNT(*) OVER (PARTITION BY p.source_id) AS group_count
  FROM raw.flight_recorder_progress AS p
),
entry AS (
  SELECT DISTINCT source_id, process_group_id, process_group_name AS name
  FROM raw.flight_recorder_entry
  WHERE process_group_id IS NOT NULL AND process_group_name IS NOT NULL
),
by_order AS (
  SELECT c.run_id, c.source_id, p.process_group_id, c.name
  FROM config AS c
  JOIN counter AS p USING (source_id, place, group_count)
  WHERE c.number IS NOT NULL
),
-- Runs in which an entry says otherwise, or a dump has a counter for several groups.
contradicted AS (
  SELECT DISTINCT o.run_id
  FROM by_order AS o
  JOIN entry AS e ON e.source_id = o.source_id AND e.process_group_id = o.process_group_id AND e.name <> o.name
),
one_for_all AS (
  SELECT e.source_id
  FROM entry AS e
  LEFT JOIN counter AS p USING (source_id, process_group_id)
  GROUP BY e.source_id
  HAVING COUNT(p.process_group_id) = 1 AND COUNT(*) > 1
),
named AS (
  SELECT e.source_id, e.process_group_id, e.name FROM entry AS e ANTI JOIN one_for_all USING (source_id)
  UNION
  SELECT o.source_id, o.process_group_id, o.name FROM by_order AS o ANTI JOIN contradicted USING (run_id)
),
counted AS (
  SELECT n.source_id, n.name, p.last_enqueued, NULLIF(p.last_started, -1) AS last_started, p.last_completed
  FROM named AS n
  JOIN counter AS p USING (source_id, process_group_id)
),
-- Some versions count a batch of messages as a collective of the rank that makes it: numbers then differ by rank.
numbered AS (
  SELECT
    run_id, process_group_name AS name,
    is_message AND collective_sequence IS DISTINCT FROM LAG(collective_sequence, 1, collective_sequence) OVER (
      PARTITION BY source_id, process_group_name ORDER BY place
    ) AS counts_messages
  FROM fabric.hang_call
),
incomparable AS (SELECT DISTINCT run_id, name FROM numbered WHERE counts_messages),
called AS (
  SELECT
    source_id, process_group_name AS name,
    MAX(collective_sequence) AS last_enqueued,
    MAX(collective_sequence) FILTER (WHERE state IN ('started', 'completed')) AS last_started,
    CASE
      WHEN NOT BOOL_OR(state IS NULL) THEN COALESCE(
        MIN(collective_sequence) FILTER (WHERE NOT is_message AND state IN ('scheduled', 'started')) - 1,
        MAX(collective_sequence)
      )
    END AS last_completed
  FROM fabric.hang_call AS c
  ANTI JOIN incomparable AS i ON i.run_id = c.run_id AND i.name = c.process_group_name
  GROUP BY ALL
),
pending AS (
  SELECT source_id, process_group_name AS name, COUNT(*) AS pending_count
  FROM fabric.hang_call
  WHERE state IN ('scheduled', 'started') AND NOT is_batch
  GROUP BY ALL
),
own AS (
  SELECT source_id, name FROM config
  UNION
  SELECT source_id, name FROM entry
)
SELECT
  d.run_id, g.group_id, d.rank, d.source_id,
  CASE WHEN g.has_messages THEN k.last_enqueued ELSE COALESCE(c.last_enqueued, k.last_enqueued) END,
  CASE WHEN g.has_messages THEN k.last_started ELSE COALESCE(c.last_started, k.last_started) END,
  CASE WHEN g.has_messages THEN k.last_completed ELSE COALESCE(c.last_completed, k.last_completed) END,
  CAST(COALESCE(n.pending_count, 0) AS INTEGER),
  CASE WHEN c.source_id IS NULL OR g.has_messages THEN 'calls' ELSE 'counter' END
FROM own AS o
JOIN fabric.hang_dump AS d USING (source_id)
LEFT JOIN raw.flight_recorder_group AS r ON r.source_id = o.source_id AND r.process_group_name = o.name
JOIN fabric.process_group AS g
  ON g.run_id = d.run_id AND g.name = o.name AND g.ranks IS NOT DISTINCT FROM TRY_CAST(r.ranks AS INTEGER[])
LEFT JOIN counted AS c ON c.source_id = o.source_id AND c.name = o.name
LEFT JOIN called AS k ON k.source_id = o.source_id AND k.name = o.name
LEFT JOIN pending AS n ON n.source_id = o.source_id AND n.name = o.name
