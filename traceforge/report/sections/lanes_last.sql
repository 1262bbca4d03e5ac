-- How often each rank was the last to arrive.
SELECT
  last_rank,
  COUNT(*) AS times_last
FROM timeline.collective
WHERE run_id = $run_id
  AND iteration IS NOT NULL
  AND last_rank IS NOT NULL
GROUP BY last_rank
ORDER BY times_last DESC, last_rank
