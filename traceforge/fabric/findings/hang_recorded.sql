-- Flight recorder dumps tell whom the ranks of a hung job wait for.
-- Mode: runtime_control_plane
-- Severity: problem
-- Summary: {text}
-- Next step: Look at the stacks of the ranks that are waited for (py-spy dump), not at those that wait.
SELECT
  h.run_id,
  CASE WHEN LEN(h.ranks) = 1 THEN 'rank' WHEN LEN(h.ranks) > 1 THEN 'ranks' ELSE 'communicator' END AS subject_kind,
  CASE
    WHEN LEN(h.ranks) > 0 THEN ARRAY_TO_STRING(h.ranks, ', ')
    ELSE COALESCE(g.description, g.name)
  END AS subject,
  h.ranks, RTRIM(h.summary || ' ' || h.detail) AS text, h.next_step, 'flight recorder' AS basis,
  -- A flight recorder's dump has no lines.
  (h.source_id, 1) AS first, GREATEST(LEN(h.waiting_ranks), 1) AS citation_count
FROM fabric.hang AS h
LEFT JOIN fabric.process_group AS g USING (run_id, group_id)
WHERE h.kind NOT IN ('none', 'unknown')
