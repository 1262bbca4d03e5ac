-- Communication that held compute up, and communication that compute hid, by communicator and operation.
SELECT run_id, communicator_id, communicator, op, collectives, exposed_wait_ns / 1e6 AS exposed_wait_ms,
  exposed_transfer_ns / 1e6 AS exposed_transfer_ms, hidden_ns / 1e6 AS hidden_ms, exposed_share,
  median_bus_bandwidth_bytes_per_s / 1e9 AS median_bus_bandwidth_gb_per_s
FROM timeline.exposed_communication
ORDER BY run_id, exposed_wait_ms + exposed_transfer_ms DESC, communicator_id, op
