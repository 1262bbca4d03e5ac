-- Mean lateness and waiting of each rank over its matched collectives.
SELECT
  arrival.rank,
  COUNT(*) AS arrivals,
  CAST(COUNT(*) FILTER (collective.last_rank = arrival.rank) AS BIGINT) AS times_last,
  AVG(arrival.late_ns) AS late_ns,
  AVG(arrival.wait_ns) AS wait_ns
FROM timeline.arrival AS arrival
JOIN timeline.collective AS collective
  ON collective.run_id = arrival.run_id
  AND collective.collective_id = arrival.collective_id
JOIN timeline.iteration AS iteration
  ON iteration.run_id = arrival.run_id
  AND iteration.iteration = arrival.iteration
WHERE arrival.run_id = $run_id
  AND NOT iteration.is_warmup
  AND NOT iteration.is_partial
GROUP BY arrival.rank
ORDER BY late_ns DESC, arrival.rank
