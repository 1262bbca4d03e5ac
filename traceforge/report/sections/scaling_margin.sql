-- Where the time of one more rank goes.
SELECT
  ranks,
  part,
  share,
  one_more_rank
FROM forecast.marginal_cost
WHERE run_id = $run_id
ORDER BY ranks, part
