-- One row a collective that was matched across ranks. Ranks that left one with a root before others came have one of
-- their own, of the same sequence number (see timeline.arrival).
-- Scope: iteration
CREATE OR REPLACE TABLE timeline.collective (
  -- Joins meta.run.run_id.
  run_id,
  -- Identifier of the collective within the run.
  collective_id,
  -- Joins align.match.collective_id: shared by the parts of one collective whose ranks were not in it together.
  match_id,
  -- Iteration in which it was issued; NULL outside of all iterations.
  iteration,
  -- Joins timeline.communicator.communicator_id.
  communicator_id,
  -- Number within the communicator.
  sequence,
  -- Operation, such as all_reduce; send_recv for two calls that meet in messages (timeline.message); NULL when unknown.
  op,
  -- Bytes (see align.payload), the largest over ranks; of messages, those that one of the two sends; NULL when unknown.
  size_bytes,
  -- Element type; NULL when unknown.
  dtype,
  -- First arrival of those whose traces take part, aligned clock, ns.
  first_arrival_ns,
  -- Last arrival of those whose traces take part, aligned clock, ns.
  last_arrival_ns,
  -- Last end over ranks, aligned clock, ns.
  end_ns,
  -- Of the members whose traces take part, the one that arrived last; ties go to the lowest rank. NULL where one of
  -- several takes part.
  last_rank,
  -- Last minus first arrival, ns; where not complete, of the members whose traces take part. NULL as above.
  skew_ns,
  -- From the last arrival to the last end, ns, >= 0; NULL where not complete, as the last arrival is unknown.
  transfer_ns,
  -- Bus bandwidth by NCCL's definition, bytes/s; NULL when the size or the transfer is unknown, it took no time, or some
  -- ranks left before others came.
  bus_bandwidth_bytes_per_s,
  -- Algorithm bandwidth, size over transfer time, bytes/s; NULL as above.
  algorithm_bandwidth_bytes_per_s,
  -- True where the trace of every member (of a send, both ends) is there and takes part.
  complete
) AS
WITH gathered AS (
  SELECT
    a.run_id, a.collective_id, a.match_id,
    MIN(a.iteration) AS iteration,
    MIN(a.arrival_ns) AS first_arrival_ns,
    MAX(a.arrival_ns) AS last_arrival_ns,
    MAX(a.end_ns) AS end_ns,
    ARG_MAX(a.rank, (a.arrival_ns, -a.rank)) AS last_rank,
    COUNT(*) AS together,
    MAX(c.op) AS op,
    MAX(c.size_bytes) AS size_bytes,
    MAX(c.dtype) AS dtype
  FROM timeline.arrival AS a
  JOIN align.call AS c USING (run_id, rank, call_id)
  GROUP BY ALL
),
numbered AS (
  SELECT DISTINCT run_id, collective_id AS match_id, communicator_id, sequence, direction IS NOT NULL AS is_pair
  FROM align.match
),
taking_part AS (
  SELECT run_id, match_id, CAST(SUM(together) AS BIGINT) AS participants FROM gathered GROUP BY ALL
),
moved AS (
  SELECT run_id, meeting_id AS collective_id, MAX(size_bytes) AS size_bytes
  FROM (
    SELECT run_id, meeting_id, source_rank, CAST(SUM(size_bytes) AS BIGINT) AS size_bytes
    FROM align.message
    GROUP BY ALL
  )
  GROUP BY ALL
),
judged AS (
  SELECT g.* REPLACE (
      CASE WHEN n.is_pair THEN 'send_recv' ELSE g.op END AS op,
      CASE WHEN n.is_pair THEN v.size_bytes ELSE g.size_bytes END AS size_bytes
    ),
    n.communicator_id, n.sequence, k.size, p.participants,
    p.participants = CASE WHEN n.is_pair THEN 2 ELSE k.size END AND k.origin <> 'unknown' AS complete
  FROM gathered AS g
  JOIN numbered AS n USING (run_id, match_id)
  JOIN taking_part AS p USING (run_id, match_id)
  JOIN align.communicator AS k USING (run_id, communicator_id)
  LEFT JOIN moved AS v ON n.is_pair AND v.run_id = g.run_id AND v.collective_id = g.collective_id
),
timed AS (
  SELECT *,
    complete OR participants > 1 AS is_compared,
    CASE WHEN complete THEN GREATEST(0, end_ns - last_arrival_ns) END AS transfer_ns,
    -- What was sent before its receiver came shows no bandwidth.
    CASE WHEN together = participants THEN NULLIF(transfer_ns / 1e9, 0) END AS seconds
  FROM judged
)
SELECT
  t.run_id, t.collective_id, t.match_id, t.iteration, t.communicator_id, t.sequence, t.op, t.size_bytes, t.dtype,
  t.first_arrival_ns, t.last_arrival_ns, t.end_ns,
  CASE WHEN t.is_compared THEN t.last_rank END,
  CASE WHEN t.is_compared THEN t.last_arrival_ns - t.first_arrival_ns END,
  t.transfer_ns,
  t.size_bytes * f.bus_factor / t.seconds,
  t.size_bytes / t.seconds,
  t.complete
FROM timed AS t
LEFT JOIN align.bus_factor AS f ON f.op = t.op AND f.size = t.size
ORDER BY t.run_id, t.collective_id
