-- How unevenly all-to-all calls with stated splits load the ranks: one row a (run, process group, rank). A rank that
-- receives more than its peers computes longer on it, such as one that holds a popular expert.
-- Scope: run
CREATE OR REPLACE TABLE graph.split_imbalance (
  -- Joins meta.run.run_id.
  run_id,
  -- As in graph.communication.
  process_group,
  -- Global rank.
  rank,
  -- Calls with stated splits.
  call_count,
  -- Elements of the first dimension sent, over all calls.
  sent_elements,
  -- Elements of the first dimension received, over all calls.
  received_elements,
  -- Received by this rank over the mean of all ranks of the group that were recorded; 1 is even. NULL without any.
  received_ratio,
  -- Largest single split sent over the mean split of its call, the worst over calls; 1 is even. NULL without any.
  worst_split_ratio
) AS
WITH split AS (
  SELECT run_id, process_group, rank, COUNT(*) AS call_count,
    CAST(SUM(LIST_SUM(in_split_sizes)) AS BIGINT) AS sent_elements,
    CAST(SUM(LIST_SUM(out_split_sizes)) AS BIGINT) AS received_elements,
    MAX(LIST_MAX(in_split_sizes) / NULLIF(LIST_AVG(in_split_sizes), 0)) AS worst_split_ratio
  FROM graph.communication
  WHERE op = 'all_to_all' AND (in_split_sizes IS NOT NULL OR out_split_sizes IS NOT NULL)
  GROUP BY run_id, process_group, rank
)
SELECT run_id, process_group, rank, call_count, sent_elements, received_elements,
  received_elements / NULLIF(AVG(received_elements) OVER (PARTITION BY run_id, process_group), 0),
  worst_split_ratio
FROM split
ORDER BY run_id, process_group, rank
