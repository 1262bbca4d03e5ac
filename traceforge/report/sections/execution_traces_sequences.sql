-- Whether ranks issue the same collectives in each process group, by execution traces alone.
SELECT process_group, LEN(ranks) AS ranks, status, compared_count, first_place, rank, node_id, found, expected,
  last_place, call_count, previous_node_id, peer_rank, peer_node_id, peer_count
FROM graph.divergence
WHERE run_id = $run_id
ORDER BY LIST_POSITION(['differs', 'missing', 'extra', 'unrecorded', 'shorter', 'agrees', 'not_comparable'], status), process_group
