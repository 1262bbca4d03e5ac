-- Collectives in the order of their stream: behind which call each stands, and when a rank was ready for it.
--
-- Kernels of one stream run one after another, so a collective that starts as soon as another one of its stream ends
-- has not been waiting for its rank. The rank was ready once its host had launched it and the device work launched
-- before it was done. A thread of gloo is such a stream: two carry out what a group is asked for, and further calls wait.
-- The first call of a stream, calls of one stream that overlap, calls of gloo that found a thread free, and sends and
-- receives of hosts are absent.
-- Scope: rank
-- In parts by: align.rank_batch
CREATE OR REPLACE TABLE graph.queued (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Joins align.call.call_id within the rank.
  call_id,
  -- Call before it on the same stream; joins align.call.call_id.
  behind_call_id,
  -- True where it starts at the end of that call and not when its rank is ready.
  is_held,
  -- By how much the rank was ready before the kernel started, ns; 0 where the stream was free.
  ahead_ns
) AS
WITH event AS (
  SELECT e.source_id, e.event_id, e.device, e.stream, e.correlation, e.raw_start_ns,
    e.raw_start_ns + COALESCE(e.duration_ns, 0) AS raw_end_ns, c.class = 'communication' AS communicates,
    c.canonical_category IN ('cuda_runtime', 'cuda_driver') AS is_launch
  FROM align.rank AS r
  JOIN raw.event AS e USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.phase = 'X' AND e.correlation IS NOT NULL
    AND r.run_id = GETVARIABLE('run_id') AND r.rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
    AND e.source_id BETWEEN GETVARIABLE('first_source_id') AND GETVARIABLE('last_source_id')
    AND c.canonical_category IN ('cuda_runtime', 'cuda_driver', 'kernel', 'gpu_memcpy', 'gpu_memset')
    -- Of ranks that never communicate, which may have millions of events, nothing has to be kept.
    AND EXISTS (
      FROM align.call
      WHERE run_id = GETVARIABLE('run_id') AND rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
    )
),
launch AS (
  SELECT source_id, correlation, MIN(raw_start_ns) AS raw_launch_ns
  FROM event
  WHERE is_launch
  GROUP BY source_id, correlation
),
launched AS (
  SELECT e.* EXCLUDE (correlation, raw_start_ns, is_launch), l.raw_launch_ns
  FROM event AS e
  JOIN launch AS l USING (source_id, correlation)
  WHERE NOT e.is_launch
),
host_work AS (
  SELECT e.source_id, e.event_id, e.track_id
  FROM align.rank AS r
  JOIN raw.event AS e USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE c.class = 'host_communication'
    AND r.run_id = GETVARIABLE('run_id') AND r.rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
    AND e.source_id BETWEEN GETVARIABLE('first_source_id') AND GETVARIABLE('last_source_id')
),
own AS (
  SELECT * FROM align.call
  WHERE run_id = GETVARIABLE('run_id') AND rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
),
streamed AS (
  SELECT c.*, l.device, l.stream, l.raw_launch_ns
  FROM own AS c
  JOIN launched AS l USING (source_id, event_id)
  WHERE c.on_device AND l.stream IS NOT NULL
  UNION ALL BY NAME
  SELECT c.*, h.track_id AS stream, c.raw_issue_ns AS raw_launch_ns
  FROM own AS c
  JOIN host_work AS h USING (source_id, event_id)
  WHERE NOT c.on_device AND c.op NOT IN ('send', 'recv', 'send_recv')
),
collective AS (
  SELECT run_id, rank, call_id, source_id, on_device, raw_arrival_ns, raw_launch_ns,
    LAG(call_id) OVER same_stream AS behind_call_id,
    LAG(raw_end_ns) OVER same_stream AS raw_free_ns,
    LAG(raw_end_ns - raw_arrival_ns) OVER same_stream AS behind_duration_ns
  FROM streamed
  WINDOW same_stream AS (PARTITION BY run_id, rank, source_id, on_device, device, stream ORDER BY raw_arrival_ns)
),
queued AS (
  -- From the end of a kernel to the start of one that waits behind it some µs pass.
  SELECT *,
    raw_launch_ns < raw_free_ns
    -- A thread that is free takes what waits, however long it needs to wake up.
    AND (NOT on_device AND raw_arrival_ns >= raw_free_ns OR ABS(raw_arrival_ns - raw_free_ns) <= LEAST(
      (SELECT value FROM meta.threshold WHERE name = 'graph.LONGEST_HANDOVER_NS'),
      behind_duration_ns * (SELECT value FROM meta.threshold WHERE name = 'graph.LONGEST_HANDOVER_SHARE')
    )) AS is_held
  FROM collective
  WHERE behind_call_id < call_id
),
work AS (
  SELECT source_id, true AS on_device, raw_launch_ns, MAX(raw_end_ns) OVER before AS raw_done_ns
  FROM launched
  WHERE NOT communicates
  WINDOW before AS (PARTITION BY source_id ORDER BY raw_launch_ns)
)
SELECT
  q.run_id, q.rank, q.call_id, q.behind_call_id, q.is_held,
  CASE
    WHEN q.is_held
      THEN GREATEST(0, q.raw_arrival_ns - GREATEST(q.raw_launch_ns, COALESCE(w.raw_done_ns, q.raw_launch_ns)))
    ELSE 0
  END
FROM queued AS q
ASOF LEFT JOIN work AS w
  ON w.source_id = q.source_id AND q.on_device = w.on_device AND q.raw_launch_ns >= w.raw_launch_ns
-- Were a thread of gloo not free, the other one might be.
WHERE q.is_held OR q.on_device AND q.raw_arrival_ns >= q.raw_free_ns
ORDER BY q.run_id, q.rank, q.call_id
