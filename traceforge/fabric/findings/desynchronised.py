"""Ranks of a communicator call different operations at the same place of its sequence."""

from traceforge.fabric.rule import Rule

RULE = Rule(
    mode="runtime_control_plane",
    severity="problem",
    summary="Call {sequence} of communicator {subject} differs between its ranks: most call {usual}, but {odd_call} "
    "is called"
    "{of_ranks}.",
    next_step="Find the branch of the program that makes these ranks call something else; such jobs hang or reduce "
    "wrong data.",
    query="""
WITH called AS (
  SELECT o.*,
    o.op || ' of ' || COALESCE(o.element_count, -1) || ' ' || COALESCE(o.datatype, '?') ||
      ', root ' || COALESCE(o.root, -1) AS call
  FROM fabric.operation AS o
  WHERE o.op NOT IN ('send', 'recv') AND o.rank IS NOT NULL
),
differing AS (
  SELECT run_id, communicator_id, MIN(sequence) AS sequence
  FROM (
    SELECT run_id, communicator_id, sequence FROM called
    GROUP BY run_id, communicator_id, sequence
    HAVING COUNT(DISTINCT call) > 1
  )
  GROUP BY run_id, communicator_id
),
kind AS (
  SELECT d.run_id, d.communicator_id, d.sequence, c.call, COUNT(*) AS ranks_with, LIST(m.global_rank) AS ranks,
    MIN((c.source_id, c.line)) AS first
  FROM differing AS d
  JOIN called AS c USING (run_id, communicator_id, sequence)
  LEFT JOIN fabric.member AS m
    ON m.run_id = c.run_id AND m.communicator_id = c.communicator_id AND m.rank = c.rank
  GROUP BY d.run_id, d.communicator_id, d.sequence, c.call
)
SELECT
  run_id, 'communicator' AS subject_kind, communicator_id AS subject, sequence,
  ARG_MAX(call, (ranks_with, call)) AS usual, ARG_MIN(call, (ranks_with, call)) AS odd_call,
  ARG_MIN(ranks, (ranks_with, call)) AS ranks,
  ARG_MIN(first, (ranks_with, call))[1] AS source_id, ARG_MIN(first, (ranks_with, call))[2] AS line,
  CAST(MIN(ranks_with) AS BIGINT) AS citation_count
FROM kind
GROUP BY run_id, communicator_id, sequence
""",
)
