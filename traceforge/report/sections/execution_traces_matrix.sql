-- Who sends how much to whom, by execution traces alone: messages and all-to-alls, the largest first.
SELECT source_rank, destination_rank, SUM(call_count) AS call_count, SUM(sent_bytes) AS sent_bytes
FROM graph.traffic
WHERE run_id = $run_id AND destination_rank IS NOT NULL
GROUP BY source_rank, destination_rank
ORDER BY sent_bytes DESC NULLS LAST, source_rank, destination_rank
