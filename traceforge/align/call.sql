-- One row a call of one rank that communicates: the device kernels (or the host thread's work) of one call.
--
-- The kernels of one record are one call (see align.communication_kernel). Where a rank has no record_param_comms
-- at all, or none for such kernels, each kernel is taken as a call; so is one launched in the window that says itself what it is (coalesced
-- groups are launched outside of their records), or that carries sends and receives (align.endpoint). Communication of
-- host threads (gloo) is a call each, in the order in which the training thread issued it: record function ids tell it.
-- Where they are all 0 (PyTorch 2.13), the nth work of a kind is taken for that of the nth call; work that begins before
-- any call of its kind could have issued it belongs to a call before the window.
-- Scope: rank
-- In parts by: align.rank_batch
-- Reads: align.rank, align.communication_kernel, align.endpoint
CREATE OR REPLACE TABLE align.call (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Number of the call on this rank, in order of issue, from 0.
  call_id,
  -- Joins meta.source.source_id.
  source_id,
  -- First device kernel, or host event, of the call; joins raw.event.event_id within the source.
  event_id,
  -- Collective, such as all_reduce; send_recv for several messages at once; NULL when unknown.
  op,
  -- Bytes (see align.payload); NULL when unknown.
  size_bytes,
  -- Element type; NULL when unknown.
  dtype,
  -- Process group name; NULL when not recorded.
  process_group_name,
  -- Member ranks: joins align.rank_list.rank_list_id; NULL when not recorded, or not all are known.
  rank_list_id,
  -- Number of members stated; NULL when not recorded.
  group_size,
  -- Sequence number stated by the trace; NULL when not recorded.
  stated_sequence,
  -- Global rank at the other end of a send or receive; NULL when not recorded.
  peer,
  -- Host call that issued it, start, ns on the rank's own clock.
  raw_issue_ns,
  -- Arrival: start of the first kernel or of the host thread's work, ns on the rank's own clock.
  raw_arrival_ns,
  -- End of the last kernel or of the host thread's work, ns on the rank's own clock.
  raw_end_ns,
  -- True for device kernels, false for work of host threads.
  on_device,
  -- False where the launch lies outside of the window or belongs to no call; such rows are never matched.
  is_linked,
  -- False where the file is truncated and may lack a part of the call; such rows are never matched.
  is_intact
) AS
WITH event AS (
  SELECT r.run_id, r.rank, e.source_id, e.event_id, e.raw_start_ns,
    e.raw_start_ns + COALESCE(e.duration_ns, 0) AS raw_end_ns, e.record_function_id, e.name, c.class, c.op
  FROM align.rank AS r
  JOIN raw.event AS e USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.phase = 'X' AND e.raw_start_ns IS NOT NULL
    AND r.run_id = GETVARIABLE('run_id') AND r.rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
    AND e.source_id BETWEEN GETVARIABLE('first_source_id') AND GETVARIABLE('last_source_id')
    AND (c.class IN ('communication_call', 'host_communication') OR e.name = 'record_param_comms')
),
payload AS (
  SELECT * FROM align.payload
  WHERE source_id BETWEEN GETVARIABLE('first_source_id') AND GETVARIABLE('last_source_id')
),
carried AS (
  SELECT source_id, carrier_event_id AS event_id, CASE WHEN COUNT(*) = 1 THEN MIN(op) ELSE 'send_recv' END AS op,
    CASE WHEN COUNT(*) = 1 THEN MIN(peer) END AS peer, CAST(SUM(size_bytes) AS BIGINT) AS size_bytes, MIN(dtype) AS dtype,
    MIN(process_group_name) AS process_group_name, MIN(rank_list_id) AS rank_list_id,
    MIN(raw_issue_ns) AS raw_issue_ns
  FROM align.endpoint
  WHERE carrier_event_id IS NOT NULL
    AND run_id = GETVARIABLE('run_id') AND rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
  GROUP BY ALL
),
device_call AS (
  SELECT
    l.run_id, l.rank, l.source_id,
    ARG_MIN(l.event_id, l.raw_start_ns) AS event_id,
    l.record_event_id,
    ARG_MIN(l.op, l.raw_start_ns) AS kernel_op,
    COALESCE(MIN(l.raw_record_ns), MIN(l.raw_launch_ns), MIN(l.raw_start_ns)) AS raw_issue_ns,
    MIN(l.raw_start_ns) AS raw_arrival_ns,
    MAX(l.raw_end_ns) AS raw_end_ns,
    true AS on_device,
    l.record_event_id IS NOT NULL OR NOT BOOL_OR(l.needs_record) AS is_linked,
    BOOL_AND(l.raw_launch_ns IS NOT NULL) AS is_launched,
    CAST(NULL AS BIGINT) AS issue_number
  FROM align.communication_kernel AS l
  WHERE run_id = GETVARIABLE('run_id') AND rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
  GROUP BY l.run_id, l.rank, l.source_id, l.record_event_id,
    CASE WHEN l.record_event_id IS NULL THEN l.event_id END
),
-- gloo carries out a reduce-scatter as an all-reduce.
paired AS (
  SELECT source_id, event_id, raw_start_ns, class = 'host_communication' AS is_work,
    CASE WHEN op = 'reduce_scatter' THEN 'all_reduce' ELSE op END AS kind
  FROM event
  WHERE op NOT IN ('send', 'recv') AND COALESCE(record_function_id, 0) = 0
    AND (class = 'host_communication' OR class = 'communication_call' AND STARTS_WITH(name, 'c10d::'))
),
placed AS (
  SELECT *, COUNT(*) FILTER (is_work) OVER so_far AS works, COUNT(*) FILTER (NOT is_work) OVER so_far AS calls
  FROM paired
  WINDOW so_far AS (PARTITION BY source_id, kind ORDER BY raw_start_ns, is_work, event_id)
),
issued AS (
  SELECT w.source_id, w.event_id, i.raw_start_ns
  FROM (
    SELECT *, works - GREATEST(MAX(works - calls) OVER (PARTITION BY source_id, kind), 0) AS place
    FROM placed
    WHERE is_work
  ) AS w
  JOIN placed AS i ON i.source_id = w.source_id AND i.kind = w.kind AND i.calls = w.place AND NOT i.is_work
),
host_call AS (
  SELECT
    e.run_id, e.rank, e.source_id, e.event_id, CAST(NULL AS BIGINT) AS record_event_id, e.op AS kernel_op,
    COALESCE(i.raw_start_ns, q.raw_start_ns, o.raw_issue_ns, e.raw_start_ns) AS raw_issue_ns,
    -- A host has begun to send before its work has a name.
    COALESCE(o.raw_issue_ns, e.raw_start_ns) AS raw_arrival_ns, COALESCE(h.raw_end_ns, e.raw_end_ns) AS raw_end_ns,
    false AS on_device, true AS is_linked, true AS is_launched, e.record_function_id AS issue_number
  FROM event AS e
  LEFT JOIN event AS i
    ON i.source_id = e.source_id AND i.record_function_id = e.record_function_id - 1
    AND i.class = 'communication_call' AND i.op = e.op
  LEFT JOIN issued AS q ON q.source_id = e.source_id AND q.event_id = e.event_id
  LEFT JOIN carried AS o ON o.source_id = e.source_id AND o.event_id = e.event_id
  LEFT JOIN align.host_exchange AS h ON h.source_id = e.source_id AND h.event_id = e.event_id
  WHERE e.class = 'host_communication' AND (h.carrier_event_id = e.event_id OR h.event_id IS NULL)
),
every_call AS (
  SELECT * FROM device_call
  UNION ALL BY NAME
  SELECT * FROM host_call
)
SELECT
  c.run_id,
  c.rank,
  ROW_NUMBER() OVER (
    PARTITION BY c.run_id, c.rank ORDER BY c.raw_issue_ns, c.issue_number, c.raw_arrival_ns, c.event_id
  ) - 1,
  c.source_id,
  c.event_id,
  COALESCE(recorded.op, own.op, carried.op, c.kernel_op),
  COALESCE(recorded.size_bytes, own.size_bytes, carried.size_bytes),
  COALESCE(recorded.dtype, own.dtype, carried.dtype),
  COALESCE(recorded.process_group_name, own.process_group_name, carried.process_group_name),
  COALESCE(recorded.rank_list_id, own.rank_list_id, carried.rank_list_id),
  COALESCE(recorded.group_size, own.group_size),
  COALESCE(recorded.sequence, own.sequence),
  COALESCE(carried.peer, recorded.peer, own.peer),
  c.raw_issue_ns,
  c.raw_arrival_ns,
  c.raw_end_ns,
  c.on_device,
  c.is_linked OR (c.is_launched AND (own.op IS NOT NULL OR carried.op IS NOT NULL)),
  c.raw_issue_ns < COALESCE(r.raw_intact_ns, c.raw_issue_ns + 1)
FROM every_call AS c
JOIN align.rank AS r USING (run_id, rank)
LEFT JOIN payload AS recorded ON recorded.source_id = c.source_id AND recorded.event_id = c.record_event_id
LEFT JOIN payload AS own ON own.source_id = c.source_id AND own.event_id = c.event_id
LEFT JOIN carried ON carried.source_id = c.source_id AND carried.event_id = c.event_id
ORDER BY c.run_id, c.rank, c.raw_issue_ns, c.issue_number
