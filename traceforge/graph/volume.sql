-- How much each kind of communicator moves, as execution traces alone record it: one row a (run, description). Groups
-- of one description, such as all tensor-parallel groups, count as one kind; messages count where they are sent.
-- Scope: run
CREATE OR REPLACE TABLE graph.volume (
  -- Joins meta.run.run_id.
  run_id,
  -- What the groups are called: their description, else their own name; NULL where the traces name none.
  communicator,
  -- Process groups of this description.
  group_count,
  -- Ranks whose traces record calls of theirs.
  rank_count,
  -- Calls in all traces, waits left out.
  call_count,
  -- Bytes sent by all these ranks; NULL where no call states its size.
  sent_bytes
) AS
WITH described AS (
  SELECT source_id, process_group_name, MIN(description) AS description
  FROM raw.chakra_process_group
  -- PyTorch writes `undefined` where the program described no group.
  WHERE description NOT IN ('', 'undefined')
  GROUP BY source_id, process_group_name
)
SELECT
  c.run_id,
  COALESCE(d.description, c.process_group) AS communicator,
  COUNT(DISTINCT c.process_group),
  COUNT(DISTINCT c.rank),
  COUNT(*),
  CAST(SUM(c.in_bytes) AS BIGINT)
FROM graph.communication AS c
LEFT JOIN described AS d ON d.source_id = c.source_id AND d.process_group_name = c.process_group
WHERE c.op IS NOT NULL AND c.op <> 'recv'
GROUP BY c.run_id, communicator
ORDER BY c.run_id, communicator
