-- What each kind of process group moves, by execution traces alone.
SELECT
  communicator,
  group_count,
  rank_count,
  call_count,
  sent_bytes,
  sent_bytes / rank_count AS bytes_of_a_rank,
  sent_bytes / NULLIF(SUM(sent_bytes) OVER (), 0) AS share
FROM graph.volume
WHERE run_id = $run_id
ORDER BY sent_bytes DESC NULLS LAST, call_count DESC, communicator
