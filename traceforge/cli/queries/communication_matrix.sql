-- Bytes each rank sends to each other one (or to its group), as execution traces record them.
SELECT run_id, source_rank, destination_rank, process_group, op, call_count, sent_bytes
FROM graph.traffic
ORDER BY run_id, sent_bytes DESC, source_rank, destination_rank
