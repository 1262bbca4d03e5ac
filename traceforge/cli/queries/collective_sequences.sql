-- Whether ranks issue the same collectives in each process group, and the first one that differs.
SELECT run_id, process_group, CAST(ranks AS VARCHAR) AS ranks, status, compared_count, first_place, last_place, call_count, rank,
  node_id, previous_node_id, found, expected, peer_rank, peer_node_id
FROM graph.divergence
ORDER BY run_id, status = 'agrees', process_group
