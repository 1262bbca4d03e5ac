-- One row a group of ranks that communicates.
CREATE OR REPLACE TABLE align.communicator (
  -- Joins meta.run.run_id.
  run_id,
  -- Small integer within the run.
  communicator_id,
  -- Process group name; empty where the trace states none.
  name,
  -- Description from the job's list of process groups; empty where there is none.
  description,
  -- Member ranks, ascending, whether or not their traces are here.
  ranks,
  -- Number of members that are known.
  size,
  -- How the membership is known: stated, assumed, inferred or unknown (see align.membership).
  origin
) AS
WITH description AS (
  SELECT r.run_id, g.process_group_name AS name, MIN(g.description) AS description
  FROM raw.kineto_process_group AS g
  JOIN align.rank AS r USING (source_id)
  GROUP BY ALL
)
SELECT
  m.run_id,
  ROW_NUMBER() OVER (PARTITION BY m.run_id ORDER BY LEN(m.group_ranks) DESC, m.group_ranks, m.group_name) - 1,
  m.group_name,
  COALESCE(MIN(d.description), ''),
  m.group_ranks,
  LEN(m.group_ranks),
  MIN(m.origin)
FROM align.membership AS m
LEFT JOIN description AS d ON d.run_id = m.run_id AND d.name = m.group_name
GROUP BY m.run_id, m.group_ranks, m.group_name
ORDER BY ALL
