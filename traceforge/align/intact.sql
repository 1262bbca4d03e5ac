-- Until when each file that ends in the middle is whole: one row a truncated file.
--
-- Profilers write host events first and the device's after them, each about in order of time. From the first kernel
-- launch on whose kernel is not there, from the last launch and from the last host event on, something may be missing.
-- Launches whose kernels are never written (captured graphs) end it too early, never too late. Without a device the
-- same holds for calls whose work on another thread is not there.
-- Scope: source
CREATE OR REPLACE TABLE align.intact (
  -- Joins meta.source.source_id.
  source_id,
  -- Nothing of the file that begins before is missing, ns on the rank's own clock; NULL where nothing can be relied on:
  -- the job uses devices, and the file ends before what they did.
  raw_until_ns
) AS
WITH truncated AS (
  SELECT DISTINCT s.run_id, s.source_id
  FROM meta.source AS s
  JOIN raw.profile AS p USING (source_id)
  JOIN meta.issue AS i USING (source_id)
  WHERE i.stage = 'ingest' AND REGEXP_MATCHES(i.code, '_(truncated|damaged_compression)$')
),
kind AS (
  SELECT k.source_id, k.kind_id,
    COALESCE(c.canonical_category IN ('kernel', 'gpu_memcpy', 'gpu_memset'), false) AS is_device,
    COALESCE(c.canonical_category IN ('cpu_op', 'user_annotation', 'python_function'), false) AS is_host,
    c.class = 'communication_call' AND c.op IS NOT NULL AND STARTS_WITH(k.name, 'c10d::') AS is_call,
    c.class = 'host_communication' AS is_work,
    COALESCE(c.canonical_category IN ('cuda_runtime', 'cuda_driver'), false)
      AND REGEXP_MATCHES(k.name, 'Launch(Cooperative)?Kernel|GraphLaunch') AS is_launch
  FROM raw.event_kind AS k
  JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM k.category AND c.name = k.name
  WHERE k.phase = 'X'
),
uses_device AS (
  SELECT DISTINCT s.run_id
  FROM kind AS k
  JOIN meta.source AS s USING (source_id)
  WHERE k.is_device OR k.is_launch
),
event AS (
  SELECT t.run_id, o.source_id, o.event_id, o.raw_start_ns, o.correlation, o.record_function_id,
    k.is_device, k.is_host, k.is_launch, k.is_call, k.is_work
  FROM truncated AS t
  JOIN raw.occurrence AS o USING (source_id)
  JOIN kind AS k USING (source_id, kind_id)
  WHERE o.raw_start_ns IS NOT NULL
),
lost AS (
  SELECT l.source_id, MIN(l.raw_start_ns) AS raw_start_ns
  FROM event AS l
  ANTI JOIN (SELECT source_id, correlation FROM event WHERE is_device) AS d
    ON d.source_id = l.source_id AND d.correlation = l.correlation
  WHERE l.is_launch
  GROUP BY l.source_id
),
undone AS (
  SELECT c.source_id, MIN(c.raw_start_ns) AS raw_start_ns
  FROM event AS c
  ANTI JOIN (SELECT source_id, record_function_id FROM event WHERE is_work) AS w
    ON w.source_id = c.source_id AND w.record_function_id = c.record_function_id + 1
  WHERE c.is_call AND c.record_function_id IS NOT NULL
  GROUP BY c.source_id
),
reached AS (
  SELECT source_id,
    MAX(raw_start_ns) FILTER (WHERE is_launch) AS launch_ns,
    MAX(raw_start_ns) FILTER (WHERE is_device) AS device_ns,
    MAX(raw_start_ns) FILTER (WHERE is_host) AS host_ns,
    -- Without a device nothing but the order of the file says how far each thread was written.
    ARG_MAX(raw_start_ns, event_id) FILTER (WHERE is_host) AS last_ns
  FROM event
  GROUP BY source_id
)
SELECT
  t.source_id,
  CASE
    WHEN u.run_id IS NULL THEN LEAST(r.last_ns, n.raw_start_ns)
    WHEN r.device_ns IS NOT NULL THEN LEAST(r.host_ns, COALESCE(r.launch_ns, r.device_ns), l.raw_start_ns)
  END
FROM truncated AS t
LEFT JOIN uses_device AS u USING (run_id)
LEFT JOIN reached AS r USING (source_id)
LEFT JOIN lost AS l USING (source_id)
LEFT JOIN undone AS n USING (source_id)
ORDER BY t.source_id
