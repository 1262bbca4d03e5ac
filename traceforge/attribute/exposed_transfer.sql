-- Communication that no kernel hides, and its pace: one row a rank, communicator and operation, over judged iterations.
--
-- Where the traces of all members are here, it is the transfer after the last arrival; else waiting for others is in it,
-- and its pace is a lower bound. Collectives that are exposed at once each count.
-- Scope: run
CREATE OR REPLACE TABLE attribute.exposed_transfer (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Joins timeline.communicator.communicator_id.
  communicator_id,
  -- Operation; NULL when unknown.
  op,
  -- Calls with exposed time.
  calls,
  -- Exposed time, ns.
  exposed_ns,
  -- Of it, the time of calls whose pace is known, ns.
  paced_ns,
  -- Of that, what the same calls would take at line rate (attribute.line_rate), ns; NULL where no line rate is known.
  at_line_rate_ns,
  -- Whether waiting for other ranks is in it.
  has_waiting,
  -- Median bus bandwidth of these calls, bytes/s; NULL where no pace is known.
  bus_bandwidth_bytes_per_s,
  -- Bus bandwidth of the fastest call of this communicator and operation, bytes/s; NULL as above.
  best_bus_bandwidth_bytes_per_s,
  -- Median bytes of a call; NULL when unknown.
  size_bytes,
  -- Median time of a call whose pace is known, hidden parts included, ns; NULL where there is none.
  call_ns
) AS
WITH called AS (
  SELECT
    e.run_id, e.rank, c.communicator_id, c.op, c.size_bytes, NOT c.complete AS has_waiting,
    e.exposed_transfer_ns + e.exposed_unsplit_ns AS exposed_ns,
    -- 0 is that of a group of which one member is known: nothing is sent, or nobody knows to how many.
    NULLIF(
      CASE
        WHEN c.complete THEN c.bus_bandwidth_bytes_per_s
        ELSE c.size_bytes * f.bus_factor / NULLIF((a.end_ns - a.arrival_ns) / 1e9, 0)
      END, 0
    ) AS bus_bandwidth_bytes_per_s,
    CASE WHEN c.complete THEN c.transfer_ns ELSE a.end_ns - a.arrival_ns END AS call_ns
  FROM timeline.exposure AS e
  JOIN timeline.collective AS c USING (run_id, collective_id)
  JOIN operation.judged_iteration AS j ON j.run_id = c.run_id AND j.iteration = c.iteration
  JOIN timeline.arrival AS a ON a.run_id = e.run_id AND a.collective_id = e.collective_id AND a.rank = e.rank
  JOIN align.communicator AS k ON k.run_id = c.run_id AND k.communicator_id = c.communicator_id
  LEFT JOIN align.bus_factor AS f ON f.op = c.op AND f.size = k.size
),
best AS (
  SELECT run_id, communicator_id, op, MAX(bus_bandwidth_bytes_per_s) AS bandwidth
  FROM called
  GROUP BY ALL
)
SELECT
  c.run_id, c.rank, c.communicator_id, c.op,
  COUNT(*) AS calls,
  CAST(SUM(c.exposed_ns) AS BIGINT) AS exposed_ns,
  CAST(COALESCE(SUM(c.exposed_ns) FILTER (c.bus_bandwidth_bytes_per_s > 0), 0) AS BIGINT) AS paced_ns,
  CAST(SUM(
    CASE
      WHEN c.bus_bandwidth_bytes_per_s < l.bus_bandwidth_bytes_per_s
        THEN c.exposed_ns * c.bus_bandwidth_bytes_per_s / l.bus_bandwidth_bytes_per_s
      WHEN c.bus_bandwidth_bytes_per_s IS NOT NULL AND l.bus_bandwidth_bytes_per_s IS NOT NULL THEN c.exposed_ns
    END
  ) AS BIGINT) AS at_line_rate_ns,
  BOOL_OR(c.has_waiting) AS has_waiting,
  MEDIAN(c.bus_bandwidth_bytes_per_s) AS bus_bandwidth_bytes_per_s,
  ANY_VALUE(b.bandwidth) AS best_bus_bandwidth_bytes_per_s,
  CAST(MEDIAN(c.size_bytes) AS BIGINT) AS size_bytes,
  CAST(MEDIAN(c.call_ns) FILTER (c.bus_bandwidth_bytes_per_s IS NOT NULL) AS BIGINT) AS call_ns
FROM called AS c
JOIN best AS b ON b.run_id = c.run_id AND b.communicator_id = c.communicator_id AND b.op IS NOT DISTINCT FROM c.op
LEFT JOIN attribute.line_rate AS l ON l.run_id = c.run_id AND l.communicator_id = c.communicator_id AND l.op = c.op
WHERE c.exposed_ns > 0
GROUP BY c.run_id, c.rank, c.communicator_id, c.op
ORDER BY c.run_id, c.rank, c.communicator_id, c.op
