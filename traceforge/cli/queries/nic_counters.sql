-- How much did each NIC move while the job was recorded, and how many errors did it count?
WITH recorded AS (
  SELECT run_id, MIN(start_ns) AS start_ns, MAX(start_ns + duration_ns) AS end_ns
  FROM timeline.iteration
  GROUP BY run_id
),
counted AS (
  SELECT t.run_id, t.host, t.nic, t.metric, COUNT(*) AS readings, MAX(t.value) - MIN(t.value) AS growth,
    MAX(t.at_ns) - MIN(t.at_ns) AS duration_ns
  FROM fabric.telemetry AS t
  JOIN recorded AS r USING (run_id)
  WHERE t.nic IS NOT NULL AND t.at_ns BETWEEN r.start_ns AND r.end_ns
  GROUP BY ALL
)
SELECT
  run_id, host, nic, MAX(readings) AS readings, MAX(duration_ns) / 1e9 AS duration_s,
  MAX(growth) FILTER (WHERE metric = 'nic_received_bytes') AS received_bytes,
  MAX(growth) FILTER (WHERE metric = 'nic_sent_bytes') AS sent_bytes,
  MAX(growth * 1e9 / NULLIF(duration_ns, 0)) FILTER (WHERE metric = 'nic_received_bytes') AS received_bytes_per_s,
  MAX(growth * 1e9 / NULLIF(duration_ns, 0)) FILTER (WHERE metric = 'nic_sent_bytes') AS sent_bytes_per_s,
  SUM(growth) FILTER (WHERE metric = 'nic_errors') AS errors
FROM counted
GROUP BY run_id, host, nic
ORDER BY run_id, host, nic
