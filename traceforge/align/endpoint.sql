-- One row a send or receive that a rank issued: one end of a message.
--
-- Most have a kernel of their own. Several that are issued together (batch_isend_irecv) share one, which is launched
-- after them by the same thread and has no arguments. On hosts (gloo) the work begins within the call, on its thread;
-- those that are awaited together share the first one's.
-- Scope: rank
-- In parts by: align.rank_batch
-- Reads: align.rank, align.rank_list, align.name_class, align.payload, align.communication_kernel, align.host_exchange
CREATE OR REPLACE TABLE align.endpoint (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Number of the send or receive on this rank, in order of issue, from 0.
  endpoint_id,
  -- Joins meta.source.source_id.
  source_id,
  -- The host call (c10d::send) or its record; joins raw.event.event_id within the source.
  event_id,
  -- send or recv.
  op,
  -- Global rank at the other end; NULL where only its place in an unknown group is recorded, or nothing.
  peer,
  -- Place of that rank in the process group; NULL when not recorded.
  peer_place,
  -- Tag of the message; NULL when not recorded.
  tag,
  -- Bytes; NULL when unknown.
  size_bytes,
  -- Element type; NULL when unknown.
  dtype,
  -- Process group name; NULL when not recorded.
  process_group_name,
  -- Member ranks: joins align.rank_list.rank_list_id; NULL when not recorded, or not all are known.
  rank_list_id,
  -- When the host issued it, ns on the rank's own clock.
  raw_issue_ns,
  -- First kernel, or host event, that carried it out; joins align.call.event_id; NULL where there is none.
  carrier_event_id,
  -- Whether it shares a kernel that was launched after it, or is awaited together with others.
  is_batched
) AS
WITH event AS (
  SELECT r.run_id, r.rank, e.source_id, e.event_id, e.track_id, e.raw_start_ns,
    e.raw_start_ns + COALESCE(e.duration_ns, 0) AS raw_end_ns, e.name, c.class, c.op
  FROM align.rank AS r
  JOIN raw.event AS e USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.phase = 'X' AND e.raw_start_ns IS NOT NULL AND c.class IN ('communication_call', 'host_communication')
    AND r.run_id = GETVARIABLE('run_id') AND r.rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
    AND e.source_id BETWEEN GETVARIABLE('first_source_id') AND GETVARIABLE('last_source_id')
),
payload AS (
  SELECT * FROM align.payload
  WHERE source_id BETWEEN GETVARIABLE('first_source_id') AND GETVARIABLE('last_source_id')
),
kernel AS (
  SELECT * FROM align.communication_kernel
  WHERE run_id = GETVARIABLE('run_id') AND rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
),
call AS (
  SELECT e.*, p.peer_place, p.tag, p.size_bytes, p.dtype
  FROM event AS e
  LEFT JOIN payload AS p USING (source_id, event_id)
  WHERE e.class = 'communication_call' AND e.op IN ('send', 'recv') AND STARTS_WITH(e.name, 'c10d::')
),
record AS (
  SELECT e.*, p.op AS recorded_op, p.peer, p.size_bytes, p.dtype, p.process_group_name, p.rank_list_id
  FROM event AS e
  JOIN payload AS p USING (source_id, event_id)
  WHERE e.name = 'record_param_comms' AND p.op IN ('send', 'recv')
),
described AS (
  SELECT r.*, CASE WHEN c.raw_end_ns >= r.raw_start_ns THEN c.event_id END AS call_event_id
  FROM record AS r
  ASOF LEFT JOIN call AS c
    ON c.source_id = r.source_id AND c.track_id = r.track_id AND r.raw_start_ns >= c.raw_start_ns
),
issued AS (
  SELECT d.run_id, d.rank, d.source_id, d.event_id, d.event_id AS record_event_id, d.track_id, d.raw_start_ns,
    COALESCE(c.raw_end_ns, d.raw_end_ns) AS raw_end_ns, d.recorded_op AS op, d.peer, c.peer_place, c.tag,
    COALESCE(d.size_bytes, c.size_bytes) AS size_bytes, COALESCE(d.dtype, c.dtype) AS dtype,
    d.process_group_name, d.rank_list_id
  FROM described AS d
  LEFT JOIN call AS c ON c.source_id = d.source_id AND c.event_id = d.call_event_id
  UNION ALL BY NAME
  SELECT run_id, rank, source_id, event_id, track_id, raw_start_ns, raw_end_ns, op, peer_place, tag, size_bytes, dtype
  FROM call
  ANTI JOIN described AS d ON d.source_id = call.source_id AND d.call_event_id = call.event_id
),
kernel_of_record AS (
  SELECT source_id, record_event_id, ARG_MIN(event_id, raw_start_ns) AS event_id
  FROM kernel
  WHERE record_event_id IS NOT NULL
  GROUP BY ALL
),
-- Kernels outside of any record, and the work of hosts, by the call around their start.
begun AS (
  SELECT source_id, event_id, launch_track_id AS track_id, raw_launch_ns AS raw_start_ns
  FROM kernel
  WHERE record_event_id IS NULL AND raw_launch_ns IS NOT NULL
    AND (op IS NULL OR op IN ('send', 'recv', 'send_recv', 'coalesced'))
  UNION ALL
  SELECT source_id, event_id, track_id, raw_start_ns
  FROM event
  WHERE class = 'host_communication' AND op IN ('send', 'recv')
),
inside AS (
  SELECT b.*, CASE WHEN i.raw_end_ns >= b.raw_start_ns THEN i.event_id END AS issue_event_id
  FROM begun AS b
  ASOF LEFT JOIN issued AS i
    ON i.source_id = b.source_id AND i.track_id = b.track_id AND b.raw_start_ns >= i.raw_start_ns
),
of_issue AS (
  SELECT source_id, issue_event_id, ARG_MIN(event_id, raw_start_ns) AS event_id
  FROM inside
  WHERE issue_event_id IS NOT NULL
  GROUP BY ALL
),
alone AS (
  -- Recorders that note the work alone name the other rank there.
  SELECT i.* REPLACE (COALESCE(i.peer, p.peer) AS peer), COALESCE(k.event_id, o.event_id) AS carrier_event_id
  FROM issued AS i
  LEFT JOIN kernel_of_record AS k ON k.source_id = i.source_id AND k.record_event_id = i.record_event_id
  LEFT JOIN of_issue AS o ON o.source_id = i.source_id AND o.issue_event_id = i.event_id
  LEFT JOIN payload AS p ON p.source_id = o.source_id AND p.event_id = o.event_id
),
-- What has no kernel of its own is carried out by the next one that the thread launches outside of any call.
together AS (
  SELECT a.source_id, a.event_id, n.event_id AS carrier_event_id
  FROM (SELECT * FROM alone WHERE carrier_event_id IS NULL) AS a
  ASOF JOIN (
    SELECT i.* FROM inside AS i
    JOIN kernel AS k USING (source_id, event_id)
    WHERE i.issue_event_id IS NULL
  ) AS n
    ON n.source_id = a.source_id AND n.track_id = a.track_id AND a.raw_start_ns <= n.raw_start_ns
)
SELECT
  a.run_id, a.rank,
  ROW_NUMBER() OVER (PARTITION BY a.run_id, a.rank ORDER BY a.raw_start_ns, a.event_id) - 1,
  a.source_id, a.event_id, a.op,
  -- What the call says of the peer is certain; records of older versions state it as the rank.
  COALESCE(g.ranks[a.peer_place + 1], a.peer),
  a.peer_place, a.tag, a.size_bytes, a.dtype, a.process_group_name, a.rank_list_id,
  a.raw_start_ns,
  COALESCE(h.carrier_event_id, a.carrier_event_id, t.carrier_event_id),
  COALESCE(h.carrier_event_id, t.carrier_event_id) IS NOT NULL
FROM alone AS a
LEFT JOIN align.rank_list AS g USING (rank_list_id)
LEFT JOIN together AS t ON t.source_id = a.source_id AND t.event_id = a.event_id
LEFT JOIN align.host_exchange AS h ON h.source_id = a.source_id AND h.event_id = a.carrier_event_id
ORDER BY a.run_id, a.rank, a.raw_start_ns, a.event_id
