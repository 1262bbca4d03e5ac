-- Who sends how much to whom, as execution traces record it: the communication matrix. One row a (sender, receiver,
-- process group, operation). Only messages and all-to-all name a receiver; other collectives send within the group.
-- Scope: run
CREATE OR REPLACE TABLE graph.traffic (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank that sends.
  source_rank,
  -- Global rank that receives; NULL for collectives that go to the whole group.
  destination_rank,
  -- As in graph.communication.
  process_group,
  -- Operation, such as all_to_all.
  op,
  -- Calls.
  call_count,
  -- Bytes handed to the communication library for it; NULL when unknown.
  sent_bytes
) AS
WITH exchange AS (
  SELECT run_id, rank, process_group, op, in_bytes, members, in_split_sizes, UNNEST(RANGE(LEN(members))) AS place
  FROM graph.communication
  WHERE op = 'all_to_all' AND members IS NOT NULL
),
peer AS (
  SELECT run_id, rank AS source_rank, members[place + 1] AS destination_rank, process_group, op,
    CASE
      WHEN in_split_sizes IS NULL THEN in_bytes // LEN(members)
      WHEN LIST_SUM(in_split_sizes) > 0
        THEN CAST(CAST(in_bytes AS HUGEINT) * in_split_sizes[place + 1] // LIST_SUM(in_split_sizes) AS BIGINT)
      ELSE 0
    END AS sent_bytes
  FROM exchange
  UNION ALL
  SELECT run_id, rank, destination_rank, process_group, op, in_bytes
  FROM graph.communication
  WHERE op = 'send'
  UNION ALL
  SELECT run_id, rank, NULL, process_group, op, in_bytes
  FROM graph.communication
  WHERE op IS NULL OR op NOT IN ('send', 'recv') AND (op <> 'all_to_all' OR members IS NULL)
)
SELECT run_id, source_rank, destination_rank, process_group, op, COUNT(*), CAST(SUM(sent_bytes) AS BIGINT)
FROM peer
GROUP BY run_id, source_rank, destination_rank, process_group, op
ORDER BY run_id, source_rank, destination_rank, process_group, op
