-- Wall clock and hidden communication by rank, summed over the iterations that count.
SELECT
  own.rank,
  COUNT(*) AS iterations,
  CAST(SUM(own.duration_ns) AS BIGINT) AS duration_ns,
  CAST(COALESCE(SUM(own.hidden_communication_ns), 0) AS BIGINT) AS hidden_ns
FROM timeline.rank_iteration AS own
JOIN timeline.iteration AS iteration
  ON iteration.run_id = own.run_id
  AND iteration.iteration = own.iteration
WHERE own.run_id = $run_id
  AND NOT iteration.is_warmup
  AND NOT iteration.is_partial
GROUP BY own.rank
ORDER BY own.rank
