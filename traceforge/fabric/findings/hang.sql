-- A collective timed out in PyTorch's watchdog; the ranks that had not even enqueued it are the suspects, or those that
-- call something else.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: Collective {subject} ({op}) timed out on {victims:count rank}: {verdict}.
-- Next step: Look at the stacks of the ranks that have not enqueued it (py-spy dump, the flight recorder), not at those
--   that waited: they do not call it, or hang in the call.
WITH stated AS (
  SELECT s.run_id, COALESCE(w.process_group_name, CAST(w.process_group_id AS VARCHAR), '') AS group_name, w.event,
    w.sequence, w.op, w.in_elements, w.rank, w.last_enqueued, w.source_id, r.line
  FROM raw.nccl_watchdog AS w
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN meta.source AS s USING (source_id)
),
named AS (
  -- The line of the timeout names no group; the next one of the rank does, with the same number.
  SELECT run_id, source_id, rank, sequence, MIN(group_name) AS group_name
  FROM stated
  WHERE event = 'progress' AND sequence IS NOT NULL AND group_name <> ''
  GROUP BY run_id, source_id, rank, sequence
  HAVING COUNT(DISTINCT group_name) = 1
),
own AS (
  SELECT e.* REPLACE (COALESCE(NULLIF(e.group_name, ''), n.group_name, '') AS group_name)
  FROM stated AS e
  LEFT JOIN named AS n
    ON n.run_id = e.run_id AND n.source_id = e.source_id AND n.rank = e.rank AND n.sequence = e.sequence
),
alike AS (
  -- Where that line is missing, another rank's timeout of the same call tells.
  SELECT run_id, sequence, op, MIN(group_name) AS group_name
  FROM own
  WHERE event = 'timeout' AND group_name <> ''
  GROUP BY run_id, sequence, op
  HAVING COUNT(DISTINCT group_name) = 1
),
event AS (
  SELECT e.* REPLACE (COALESCE(NULLIF(e.group_name, ''), a.group_name, '') AS group_name)
  FROM own AS e
  LEFT JOIN alike AS a
    ON a.run_id = e.run_id AND a.sequence = e.sequence AND a.op = e.op AND e.event = 'timeout'
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
),
known AS (
  SELECT run_id, MAX(rank) AS last_rank
  FROM (
    SELECT run_id, rank FROM event WHERE group_name = '0' OR STARTS_WITH(group_name, '0(')
    UNION ALL
    SELECT run_id, global_rank FROM fabric.member WHERE global_rank_origin IN ('launcher', 'communicator')
  )
  GROUP BY run_id
),
silent AS (
  -- Ranks of the group of all that print nothing of it, where most do.
  SELECT t.run_id, t.group_name, LIST(a.rank ORDER BY a.rank) AS ranks
  FROM timeout AS t
  JOIN known AS k USING (run_id)
  CROSS JOIN LATERAL (SELECT UNNEST(RANGE(k.last_rank + 1)) AS rank) AS a
  WHERE (t.group_name = '0' OR STARTS_WITH(t.group_name, '0('))
    AND NOT EXISTS (
      SELECT 1 FROM event AS e WHERE e.run_id = t.run_id AND e.group_name = t.group_name AND e.rank = a.rank
    )
  GROUP BY t.run_id, t.group_name
  HAVING COUNT(*) < MIN(t.victims)
),
called AS (
  SELECT run_id, group_name, sequence, op, op || COALESCE(' of ' || in_elements || ' elements', '') AS call,
    LIST_SORT(LIST(DISTINCT rank)) AS ranks
  FROM event
  WHERE event = 'timeout' AND group_name <> ''
  GROUP BY run_id, group_name, sequence, op, in_elements
),
differing AS (
  -- Of other operations the sizes may differ between ranks.
  SELECT run_id, group_name, sequence,
    STRING_AGG(call || CASE LEN(ranks) WHEN 1 THEN ' on rank ' ELSE ' on ranks ' END || ARRAY_TO_STRING(ranks, ', '),
      '; ' ORDER BY LEN(ranks) DESC, call)[:300] AS calls
  FROM called
  GROUP BY run_id, group_name, sequence
  HAVING COUNT(DISTINCT op) > 1 OR (COUNT(*) > 1
    AND BOOL_AND(op IN ('ALLREDUCE', '_ALLGATHER_BASE', '_REDUCE_SCATTER_BASE', 'BROADCAST', 'REDUCE')))
)
SELECT
  t.run_id, 'communicator' AS subject_kind,
  t.sequence || CASE WHEN t.group_name = '' THEN '' ELSE ' of process group ' || t.group_name END AS subject,
  t.op, t.victims, COALESCE(b.ranks, CASE WHEN d.calls IS NULL THEN i.ranks END) AS ranks,
  CASE
    WHEN b.ranks IS NOT NULL THEN CASE LEN(b.ranks) WHEN 1 THEN 'rank ' ELSE 'ranks ' END
      || ARRAY_TO_STRING(b.ranks, ', ') || CASE LEN(b.ranks) WHEN 1 THEN ' has' ELSE ' have' END || ' not enqueued it'
    WHEN d.calls IS NOT NULL THEN 'its ranks call different things there: ' || d.calls
    WHEN i.ranks IS NOT NULL THEN 'in these logs all ranks report it but ' || ARRAY_TO_STRING(i.ranks, ', ')
    ELSE 'these logs do not show which rank is missing'
  END AS verdict,
  CASE WHEN b.ranks IS NULL AND d.calls IS NOT NULL
    THEN 'Find the branch of the program, or the data, that makes these ranks call something else.'
  END AS next_step,
  'error message' AS basis, t.first, t.citation_count
FROM timeout AS t
LEFT JOIN behind AS b ON b.run_id = t.run_id AND b.group_name = t.group_name
LEFT JOIN silent AS i ON i.run_id = t.run_id AND i.group_name = t.group_name
LEFT JOIN differing AS d ON d.run_id = t.run_id AND d.group_name = t.group_name AND d.sequence = t.sequence
