-- Communication that held compute up, and communication that compute hid, by rank.
SELECT r.run_id, r.rank, SUM(p.exposed_ns) / 1e6 AS exposed_ms, SUM(r.hidden_communication_ns) / 1e6 AS hidden_ms,
  SUM(p.exposed_ns) / SUM(r.duration_ns) AS exposed_share
FROM timeline.rank_iteration AS r
JOIN (
  SELECT run_id, iteration, rank, SUM(duration_ns) FILTER (WHERE phase IN ('transfer', 'wait', 'communication')) AS exposed_ns
  FROM timeline.phase
  GROUP BY run_id, iteration, rank
) AS p USING (run_id, iteration, rank)
GROUP BY r.run_id, r.rank
ORDER BY r.run_id, r.rank
