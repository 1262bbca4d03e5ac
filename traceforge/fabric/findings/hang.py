"""PyTorch's watchdog gave a collective up; ranks that had not even enqueued it are the suspects."""

from traceforge.fabric.rule import Rule

RULE = Rule(
    mode="runtime_control_plane",
    severity="problem",
    summary="Collective {subject} ({op}) did not end in time on {victims:count rank}: {verdict}.",
    next_step="Look at the stacks of the ranks that never entered it (py-spy dump, the flight recorder), not at "
    "those that "
    "waited.",
    query="""
WITH timeout AS (
  SELECT s.run_id, COALESCE(w.process_group_name, CAST(w.process_group_id AS VARCHAR), '') AS group_name, w.sequence,
    w.op,
    w.rank, w.source_id, r.line
  FROM raw.nccl_watchdog AS w
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN meta.source AS s USING (source_id)
  WHERE w.event = 'timeout'
),
progress AS (
  SELECT s.run_id, COALESCE(w.process_group_name, CAST(w.process_group_id AS VARCHAR), '') AS group_name, w.rank,
    MAX(w.last_enqueued) AS last_enqueued
  FROM raw.nccl_watchdog AS w
  JOIN meta.source AS s USING (source_id)
  WHERE w.event = 'progress'
  GROUP BY ALL
),
first AS (
  SELECT run_id, group_name, MIN(sequence) AS sequence FROM timeout GROUP BY run_id, group_name
),
gathered AS (
  SELECT t.run_id, t.group_name, t.sequence, MIN(t.op) AS op, LIST(DISTINCT t.rank) AS victims, MIN((t.source_id,
    t.line)) AS first,
    COUNT(*) AS citation_count
  FROM timeout AS t
  JOIN first AS f USING (run_id, group_name, sequence)
  GROUP BY t.run_id, t.group_name, t.sequence
)
SELECT
  g.run_id, 'communicator' AS subject_kind,
  g.sequence || CASE WHEN g.group_name = '' THEN '' ELSE ' of process group ' || g.group_name END AS subject,
  g.op, LEN(g.victims) AS victims, LIST(p.rank ORDER BY p.rank) FILTER (WHERE p.last_enqueued < g.sequence) AS ranks,
  CASE
    WHEN COUNT(*) FILTER (WHERE p.last_enqueued < g.sequence) > 0 THEN
      CASE COUNT(*) FILTER (WHERE p.last_enqueued < g.sequence) WHEN 1 THEN 'rank ' ELSE 'ranks ' END
      || STRING_AGG(CAST(p.rank AS VARCHAR),
        ', ' ORDER BY p.rank) FILTER (WHERE p.last_enqueued < g.sequence)
      || ' never entered it'
    ELSE 'which rank is missing these logs do not tell'
  END AS verdict,
  'error message' AS basis, g.first[1] AS source_id, g.first[2] AS line, g.citation_count
FROM gathered AS g
LEFT JOIN progress AS p ON p.run_id = g.run_id AND p.group_name = g.group_name
GROUP BY ALL
""",
)
