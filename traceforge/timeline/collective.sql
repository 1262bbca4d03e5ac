-- One row a collective that was matched across ranks.
CREATE OR REPLACE TABLE timeline.collective (
  -- Joins meta.run.run_id.
  run_id,
  -- Identifier of the collective within the run.
  collective_id,
  -- Iteration in which it was issued; NULL outside of all iterations.
  iteration,
  -- Joins timeline.communicator.communicator_id.
  communicator_id,
  -- Number within the communicator.
  sequence,
  -- Operation, such as all_reduce; send_recv for a send with its receive; NULL when unknown.
  op,
  -- Bytes (see align.payload), the largest over ranks; NULL when unknown.
  size_bytes,
  -- Element type; NULL when unknown.
  dtype,
  -- First arrival, aligned clock, ns.
  first_arrival_ns,
  -- Last arrival, aligned clock, ns.
  last_arrival_ns,
  -- Last end over ranks, aligned clock, ns.
  end_ns,
  -- Rank that arrived last; ties go to the lowest rank.
  last_rank,
  -- Last minus first arrival, ns.
  skew_ns,
  -- From the last arrival to the last end, ns, >= 0.
  transfer_ns,
  -- Bus bandwidth by NCCL's definition, bytes/s; NULL when the size is unknown or the transfer took no time.
  bus_bandwidth_bytes_per_s,
  -- Algorithm bandwidth, size over transfer time, bytes/s; NULL as above.
  algorithm_bandwidth_bytes_per_s,
  -- True where the trace of every member (of a send, both ends) takes part.
  complete
) AS
WITH gathered AS (
  SELECT
    a.run_id, a.collective_id,
    MIN(a.iteration) AS iteration,
    MIN(a.arrival_ns) AS first_arrival_ns,
    MAX(a.arrival_ns) AS last_arrival_ns,
    MAX(a.end_ns) AS end_ns,
    ARG_MAX(a.rank, (a.arrival_ns, -a.rank)) AS last_rank,
    COUNT(*) AS participants,
    CASE WHEN MIN(c.op) = 'recv' AND MAX(c.op) = 'send' THEN 'send_recv' ELSE MAX(c.op) END AS op,
    COALESCE(BOOL_AND(c.op IN ('send', 'recv')), false) AS is_pair,
    MAX(c.size_bytes) AS size_bytes,
    MAX(c.dtype) AS dtype
  FROM timeline.arrival AS a
  JOIN align.call AS c USING (run_id, rank, call_id)
  GROUP BY ALL
),
numbered AS (
  SELECT DISTINCT run_id, collective_id, communicator_id, sequence FROM align.match
)
SELECT
  g.run_id, g.collective_id, g.iteration, n.communicator_id, n.sequence, g.op, g.size_bytes, g.dtype,
  g.first_arrival_ns, g.last_arrival_ns, g.end_ns, g.last_rank,
  g.last_arrival_ns - g.first_arrival_ns,
  GREATEST(0, g.end_ns - g.last_arrival_ns),
  g.size_bytes * f.bus_factor / NULLIF(GREATEST(0, g.end_ns - g.last_arrival_ns) / 1e9, 0),
  g.size_bytes / NULLIF(GREATEST(0, g.end_ns - g.last_arrival_ns) / 1e9, 0),
  g.participants = CASE WHEN g.is_pair THEN 2 ELSE k.size END
FROM gathered AS g
JOIN numbered AS n USING (run_id, collective_id)
JOIN align.communicator AS k USING (run_id, communicator_id)
LEFT JOIN align.bus_factor AS f ON f.op = g.op AND f.size = k.size
ORDER BY g.run_id, g.collective_id
