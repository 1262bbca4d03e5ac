-- Whether what ranks send to each other is received, by execution traces alone.
SELECT status, source_rank, destination_rank, send_count, receive_count, first_place, send_node_id, receive_node_id,
  sent_bytes, received_bytes
FROM graph.message_pair
WHERE run_id = $run_id
ORDER BY status = 'agrees', status = 'shorter', source_rank, destination_rank
