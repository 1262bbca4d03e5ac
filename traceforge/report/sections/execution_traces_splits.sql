-- How unevenly all-to-alls load the ranks, by the splits that execution traces state: the fullest rank first.
SELECT process_group, rank, call_count, received_elements, received_ratio, worst_split_ratio
FROM graph.split_imbalance
WHERE run_id = $run_id AND received_ratio IS NOT NULL
ORDER BY received_ratio DESC, process_group, rank
