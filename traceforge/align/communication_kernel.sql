-- One row a device kernel that communicates, with the host call that launched it.
--
-- Kernels are tied to their call through the launch: kernel -> launch call (correlation) -> the record_param_comms of
-- the same thread that contains it. Counting kernels instead would go wrong, as kernels that were launched before the
-- window stand at the head of some ranks' traces. A copy from one device to another is one of them only within such a
-- record: programs also copy without meeting anyone.
--
-- Not all that communicates has a record: PyTorch's process groups record their calls of NCCL and its like, and nothing
-- records kernels of other libraries (DeepEP, symmetric memory, engines' own all-reduces), those that a CUDA graph
-- replays, nor calls of NCCL that go past the process groups (then no record names their operation).
-- Scope: rank
-- In parts by: align.rank_batch
-- Reads: align.rank, align.payload
CREATE OR REPLACE TABLE align.communication_kernel (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Joins meta.source.source_id.
  source_id,
  -- Joins raw.event.event_id within the source.
  event_id,
  -- Collective, such as all_reduce, by the kernel's name or else by the call around its launch; NULL when unknown.
  op,
  -- Start, ns on the rank's own clock.
  raw_start_ns,
  -- End, likewise.
  raw_end_ns,
  -- When the host launched it; NULL where the launch lies outside of the window.
  raw_launch_ns,
  -- Track of the host thread that launched it; NULL likewise.
  launch_track_id,
  -- The record_param_comms around the launch; joins raw.event.event_id; NULL where there is none.
  record_event_id,
  -- Start of that record; NULL likewise.
  raw_record_ns,
  -- True where the rank has records, and a call of this kernel within the window would have one.
  needs_record,
  -- False for kernels of which PyTorch records no call on any rank: of other libraries, and replayed by a CUDA graph.
  is_recorded
) AS
WITH event AS (
  SELECT r.run_id, r.rank, e.source_id, e.event_id, e.track_id, e.raw_start_ns,
    e.raw_start_ns + COALESCE(e.duration_ns, 0) AS raw_end_ns, e.correlation, e.name,
    c.class, c.canonical_category, c.op, c.is_recorded
  FROM align.rank AS r
  JOIN raw.event AS e USING (source_id)
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.phase = 'X' AND e.raw_start_ns IS NOT NULL
    AND r.run_id = GETVARIABLE('run_id') AND r.rank BETWEEN GETVARIABLE('first_rank') AND GETVARIABLE('last_rank')
    AND e.source_id BETWEEN GETVARIABLE('first_source_id') AND GETVARIABLE('last_source_id')
),
launch AS (
  SELECT source_id, correlation, ARG_MIN(track_id, raw_start_ns) AS track_id, MIN(raw_start_ns) AS raw_start_ns,
    BOOL_OR(CONTAINS(name, 'GraphLaunch')) AS is_graph
  FROM event
  WHERE canonical_category IN ('cuda_runtime', 'cuda_driver') AND correlation IS NOT NULL
  GROUP BY source_id, correlation
),
launched AS (
  SELECT k.*, l.track_id AS launch_track_id, l.raw_start_ns AS raw_launch_ns,
    COALESCE(l.is_graph, false) AS is_graph
  FROM event AS k
  LEFT JOIN launch AS l ON l.source_id = k.source_id AND l.correlation = k.correlation
  WHERE k.class = 'communication'
),
record AS (
  SELECT * FROM event WHERE name = 'record_param_comms'
),
recorded AS (
  SELECT source_id, LIST(DISTINCT p.op) FILTER (p.op IS NOT NULL) AS ops
  FROM record
  LEFT JOIN align.payload AS p USING (source_id, event_id)
  GROUP BY source_id
),
named_call AS (
  SELECT * FROM event WHERE class = 'communication_call' AND op IS NOT NULL
)
SELECT
  l.run_id, l.rank, l.source_id, l.event_id,
  -- Kernels of RCCL, and of some builds of NCCL, share one name (ncclDevKernel_Generic): then the call names it.
  COALESCE(l.op, CASE WHEN a.raw_end_ns >= l.raw_launch_ns THEN a.op END),
  l.raw_start_ns, l.raw_end_ns, l.raw_launch_ns, l.launch_track_id,
  CASE WHEN r.raw_end_ns >= l.raw_launch_ns THEN r.event_id END,
  CASE WHEN r.raw_end_ns >= l.raw_launch_ns THEN r.raw_start_ns END,
  o.source_id IS NOT NULL AND NOT (
    l.raw_launch_ns IS NOT NULL AND (
      l.is_graph OR NOT l.is_recorded
      -- Only these kernels are named after the call.
      OR COALESCE(
        l.op IN ('all_reduce', 'all_gather', 'reduce_scatter') AND NOT LIST_HAS_ANY(o.ops, [l.op, 'coalesced']), false
      )
    )
  ),
  l.is_recorded AND NOT l.is_graph
FROM launched AS l
LEFT JOIN recorded AS o ON o.source_id = l.source_id
ASOF LEFT JOIN record AS r
  ON r.source_id = l.source_id AND r.track_id = l.launch_track_id AND l.raw_launch_ns >= r.raw_start_ns
ASOF LEFT JOIN named_call AS a
  ON a.source_id = l.source_id AND a.track_id = l.launch_track_id AND l.raw_launch_ns >= a.raw_start_ns
WHERE l.canonical_category <> 'gpu_memcpy' OR r.raw_end_ns >= l.raw_launch_ns
ORDER BY l.run_id, l.rank, l.event_id
