-- How near does exposed communication come to the line rate of its links, by communicator and operation?
SELECT e.run_id, e.communicator_id, COALESCE(NULLIF(k.description, ''), k.name) AS communicator, k.size AS ranks, e.op,
  SUM(e.exposed_ns) / 1e6 AS exposed_ms, ANY_VALUE(e.size_bytes) AS median_size_bytes,
  MEDIAN(e.bus_bandwidth_bytes_per_s) / 1e9 AS median_gb_per_s,
  ANY_VALUE(e.best_bus_bandwidth_bytes_per_s) / 1e9 AS best_gb_per_s,
  ANY_VALUE(l.bus_bandwidth_bytes_per_s) / 1e9 AS line_rate_gb_per_s,
  SUM(e.at_line_rate_ns) / NULLIF(SUM(e.paced_ns), 0) AS share_at_line_rate, ANY_VALUE(l.basis) AS basis
FROM attribute.exposed_transfer AS e
JOIN timeline.communicator AS k USING (run_id, communicator_id)
LEFT JOIN attribute.line_rate AS l USING (run_id, communicator_id, op)
GROUP BY e.run_id, e.communicator_id, k.description, k.name, k.size, e.op
ORDER BY e.run_id, exposed_ms DESC, e.communicator_id, e.op
