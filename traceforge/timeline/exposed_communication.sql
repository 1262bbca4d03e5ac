-- What communication cost and what compute hid: one row a communicator and operation, over ranks and iterations.
-- Scope: run
CREATE OR REPLACE VIEW timeline.exposed_communication (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins timeline.communicator.communicator_id.
  communicator_id,
  -- Description of the communicator; its name where there is none.
  communicator,
  -- Operation.
  op,
  -- Collectives.
  collectives,
  -- Exposed time until the last rank arrived, summed over ranks, ns; NULL where no collective is complete.
  exposed_wait_ns,
  -- Exposed time after the last rank arrived, summed over ranks, ns; NULL where no collective is complete.
  exposed_transfer_ns,
  -- Exposed time of which waiting and transfer cannot be told apart, as members have no trace, summed over ranks, ns.
  exposed_unsplit_ns,
  -- Time hidden by compute, summed over ranks, ns.
  hidden_ns,
  -- Exposed share of the communication time, 0..1; NULL where there is none.
  exposed_share,
  -- Median bus bandwidth, bytes/s; NULL when no size is known.
  median_bus_bandwidth_bytes_per_s
) AS
WITH summed AS (
  SELECT run_id, collective_id, SUM(exposed_wait_ns) AS wait_ns, SUM(exposed_transfer_ns) AS transfer_ns,
    SUM(exposed_unsplit_ns) AS unsplit_ns, SUM(hidden_ns) AS hidden_ns
  FROM timeline.exposure
  GROUP BY ALL
)
SELECT
  c.run_id,
  c.communicator_id,
  COALESCE(NULLIF(k.description, ''), k.name) AS communicator,
  c.op,
  COUNT(*) AS collectives,
  CASE WHEN BOOL_OR(c.complete) THEN CAST(SUM(s.wait_ns) AS BIGINT) END AS exposed_wait_ns,
  CASE WHEN BOOL_OR(c.complete) THEN CAST(SUM(s.transfer_ns) AS BIGINT) END AS exposed_transfer_ns,
  CAST(SUM(s.unsplit_ns) AS BIGINT) AS exposed_unsplit_ns,
  CAST(SUM(s.hidden_ns) AS BIGINT) AS hidden_ns,
  SUM(s.wait_ns + s.transfer_ns + s.unsplit_ns)
    / NULLIF(SUM(s.wait_ns + s.transfer_ns + s.unsplit_ns + s.hidden_ns), 0) AS exposed_share,
  MEDIAN(c.bus_bandwidth_bytes_per_s) AS median_bus_bandwidth_bytes_per_s
FROM timeline.collective AS c
JOIN summed AS s USING (run_id, collective_id)
JOIN timeline.communicator AS k USING (run_id, communicator_id)
GROUP BY c.run_id, c.communicator_id, k.description, k.name, c.op
ORDER BY c.run_id, SUM(s.wait_ns + s.transfer_ns + s.unsplit_ns) DESC, c.communicator_id, c.op
