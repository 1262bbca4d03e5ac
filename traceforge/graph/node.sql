-- One row a node of each execution trace's graph: its recorded nodes, and where it is linked to a timeline, the launches,
-- synchronisations and device work that the timeline shows in the same stretch of time.
-- Scope: rank
CREATE OR REPLACE TABLE graph.node (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins graph.trace.source_id.
  source_id,
  -- Joins graph.trace.part.
  part,
  -- Number of the node within the trace: raw.chakra_node.position of a recorded node, -1 - event_id of a timeline's.
  node,
  -- Global rank; NULL when unknown.
  rank,
  -- recorded (in the execution trace) or timeline (added from the linked timeline).
  origin,
  -- Timeline it is tied to; joins raw.event.source_id. NULL when not linked.
  timeline_source_id,
  -- Event of that timeline; joins raw.event.event_id.
  event_id,
  -- Name as written.
  name,
  -- host (operation or annotation), launch, blocking (the host waits for the device), order (a stream waits for another
  -- one), compute, communication, copy, or metadata.
  kind,
  -- Whether it ran on a device.
  on_device,
  -- Host thread: of a recorded node as PyTorch counts, of a timeline's node its track. NULL on devices.
  thread_id,
  -- Device stream; NULL on the host.
  stream,
  -- Start, ns on the rank's own clock; NULL when unknown.
  raw_start_ns,
  -- Duration, ns; NULL when unknown.
  duration_ns
) AS
WITH linked AS (
  SELECT l.run_id, l.source_id, l.part, l.timeline_source_id, l.position, l.event_id, e.raw_start_ns, e.duration_ns
  FROM graph.linked_node AS l
  JOIN raw.event AS e ON e.source_id = l.timeline_source_id AND e.event_id = l.event_id
),
stretch AS (
  SELECT run_id, source_id, part, timeline_source_id, MIN(raw_start_ns) AS raw_start_ns,
    MAX(raw_start_ns + COALESCE(duration_ns, 0)) AS raw_end_ns
  FROM linked
  GROUP BY ALL
),
event AS (
  SELECT s.run_id, s.source_id, s.part, s.timeline_source_id, s.raw_end_ns AS stretch_end_ns, e.event_id, e.name,
    e.track_id, e.stream, e.correlation, e.raw_start_ns, e.duration_ns, c.class, c.canonical_category
  FROM stretch AS s
  JOIN raw.event AS e ON e.source_id = s.timeline_source_id
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.phase = 'X' AND e.raw_start_ns >= s.raw_start_ns
    AND c.canonical_category IN ('cuda_runtime', 'cuda_driver', 'kernel', 'gpu_memcpy', 'gpu_memset')
),
host_call AS (
  SELECT * FROM event
  WHERE canonical_category IN ('cuda_runtime', 'cuda_driver') AND raw_start_ns < stretch_end_ns
),
device AS (
  SELECT e.*, h.event_id AS call_event_id, h.raw_start_ns + COALESCE(h.duration_ns, 0) AS raw_call_end_ns
  FROM event AS e
  LEFT JOIN host_call AS h
    ON h.source_id = e.source_id AND h.part = e.part AND h.correlation = e.correlation AND e.correlation > 0
  WHERE e.canonical_category IN ('kernel', 'gpu_memcpy', 'gpu_memset')
    AND (h.event_id IS NOT NULL OR e.raw_start_ns < e.stretch_end_ns)
  QUALIFY ROW_NUMBER() OVER (PARTITION BY e.source_id, e.part, e.event_id ORDER BY h.raw_start_ns) = 1
),
launched AS (
  SELECT source_id, part, call_event_id AS event_id,
    -- A copy to or from pageable memory holds its call up until the device gets to it, if not to its end.
    BOOL_OR(
      canonical_category = 'gpu_memcpy'
      AND (raw_start_ns + duration_ns <= raw_call_end_ns
        OR (name LIKE '%Pageable%' AND raw_start_ns <= raw_call_end_ns))
    ) AS is_awaited
  FROM device
  WHERE call_event_id IS NOT NULL
  GROUP BY ALL
),
call_kind AS (
  SELECT h.*,
    CASE
      WHEN l.is_awaited OR REGEXP_MATCHES(h.name, 'Synchronize|(cuda|hip)(Memcpy|Free)$') THEN 'blocking'
      WHEN l.event_id IS NOT NULL THEN 'launch'
      WHEN REGEXP_MATCHES(h.name, 'StreamWaitEvent') THEN 'order'
    END AS kind
  FROM host_call AS h
  LEFT JOIN launched AS l USING (source_id, part, event_id)
)
SELECT
  t.run_id, n.source_id, n.part, n.position, t.rank, 'recorded', l.timeline_source_id, l.event_id, n.name,
  CASE
    WHEN n.node_type = 'METADATA' OR n.name = '## process_group:init ##' THEN 'metadata'
    WHEN n.node_type LIKE 'COMM%' THEN 'communication'
    WHEN n.is_cpu THEN 'host'
    WHEN c.position IS NOT NULL THEN 'communication'
    WHEN n.node_type LIKE 'MEM%' OR n.category IN ('gpu_memcpy', 'gpu_memset') THEN 'copy'
    ELSE 'compute'
  END,
  NOT COALESCE(n.is_cpu, false),
  CASE WHEN n.is_cpu THEN n.thread_id END,
  CASE WHEN NOT COALESCE(n.is_cpu, false) THEN n.stream END,
  COALESCE(l.raw_start_ns, n.raw_start_ns),
  COALESCE(l.duration_ns, n.duration_ns)
FROM raw.chakra_node AS n
JOIN graph.trace AS t USING (source_id, part)
LEFT JOIN linked AS l ON l.source_id = n.source_id AND l.part = n.part AND l.position = n.position
LEFT JOIN (SELECT DISTINCT source_id, position FROM raw.chakra_communication) AS c
  ON c.source_id = n.source_id AND c.position = n.position
UNION ALL
SELECT
  k.run_id, k.source_id, k.part, -1 - k.event_id, t.rank, 'timeline', k.timeline_source_id, k.event_id, k.name, k.kind,
  false, k.track_id, NULL, k.raw_start_ns, k.duration_ns
FROM call_kind AS k
JOIN graph.trace AS t USING (source_id, part)
WHERE k.kind IS NOT NULL
UNION ALL
SELECT
  d.run_id, d.source_id, d.part, -1 - d.event_id, t.rank, 'timeline', d.timeline_source_id, d.event_id, d.name,
  CASE WHEN d.class IN ('communication', 'copy') THEN d.class ELSE 'compute' END,
  true, NULL, d.stream, d.raw_start_ns, d.duration_ns
FROM device AS d
JOIN graph.trace AS t USING (source_id, part)
ORDER BY 1, 2, 3, 4
