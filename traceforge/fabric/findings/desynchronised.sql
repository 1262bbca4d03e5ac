-- Ranks of a communicator call different operations at the same position of its sequence.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: Call {sequence} of communicator {subject} differs between its ranks: most call {usual}, but {odd_call} is
--   called{of_ranks}.
-- Next step: Find the branch of the program that makes these ranks call something else; such jobs hang or reduce wrong
--   data.
WITH called AS (
  SELECT run_id, communicator_id, rank, sequence, source_id, line,
    op || ' of ' || COALESCE(element_count, -1) || ' ' || COALESCE(datatype, '?') || ', root ' || COALESCE(root, -1)
      AS call
  FROM fabric.operation
  WHERE op NOT IN ('send', 'recv') AND rank IS NOT NULL
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
variant AS (
  SELECT run_id, communicator_id, sequence, c.call, COUNT(*) AS ranks_with, LIST(m.global_rank) AS ranks,
    MIN((c.source_id, c.line)) AS first
  FROM differing
  JOIN called AS c USING (run_id, communicator_id, sequence)
  LEFT JOIN fabric.member AS m USING (run_id, communicator_id, rank)
  GROUP BY run_id, communicator_id, sequence, c.call
)
SELECT
  run_id, 'communicator' AS subject_kind, communicator_id AS subject, sequence,
  ARG_MAX(call, (ranks_with, call)) AS usual,
  ARG_MIN(call, (ranks_with, call)) AS odd_call,
  ARG_MIN(ranks, (ranks_with, call)) AS ranks,
  ARG_MIN(first, (ranks_with, call)) AS first,
  MIN(ranks_with) AS citation_count
FROM variant
GROUP BY run_id, communicator_id, sequence
