-- What was recorded of a run, in counts: the one query behind all checks.
WITH recorded AS (
  SELECT k.rank, k.source_id, k.host, k.has_device
  FROM align.rank AS k
  WHERE k.run_id = $run_id
),
kineto AS (
  SELECT f.metadata, f.backend, f.world_size
  FROM raw.profile AS f
  JOIN recorded USING (source_id)
),
call AS (
  SELECT c.process_group_name, c.stated_sequence, c.size_bytes, COALESCE(k.is_recorded, true) AS is_recorded
  FROM align.call AS c
  LEFT JOIN align.communication_kernel AS k
    ON k.run_id = c.run_id AND k.source_id = c.source_id AND k.event_id = c.event_id
  WHERE c.run_id = $run_id
),
iteration AS (
  SELECT i.ranks, i.is_warmup, i.is_partial, i.duration_ns
  FROM timeline.iteration AS i
  WHERE i.run_id = $run_id
),
log AS (
  SELECT s.source_id
  FROM meta.source AS s
  WHERE s.run_id = $run_id AND s.kind = 'nccl_log'
),
issue AS (
  SELECT code, severity, SUM(count) AS count, SUM(lost_events) AS lost_events
  FROM meta.issue
  WHERE run_id = $run_id
  GROUP BY code, severity
)
SELECT
  (SELECT COUNT(*) FROM meta.source SEMI JOIN raw.profile USING (source_id) WHERE run_id = $run_id) AS timelines,
  (
    SELECT COUNT(*) FROM meta.source SEMI JOIN raw.profile USING (source_id)
    WHERE run_id = $run_id AND rank IS NULL
  ) AS nameless,
  (SELECT COALESCE(SUM(count), 0) FROM issue WHERE code IN ('rank_repeated', 'rank_of_another_window')) AS set_aside,
  (
    SELECT IF(COUNT(DISTINCT kind) = 1, MIN(kind), NULL) FROM meta.source SEMI JOIN raw.profile USING (source_id)
    WHERE run_id = $run_id
  ) AS profiler,
  (SELECT COUNT(*) FROM recorded) AS ranks,
  (
    SELECT COALESCE(r.world_size, (SELECT MAX(world_size) FROM kineto)) FROM meta.run AS r WHERE r.run_id = $run_id
  ) AS world_size,
  (SELECT LIST(rank ORDER BY rank) FROM recorded) AS present,
  (SELECT COUNT(*) FROM recorded WHERE host IS NULL) AS hostless,
  (SELECT COUNT(*) FROM recorded WHERE has_device) AS device_ranks,
  (SELECT COUNT(*) FROM kineto WHERE backend ILIKE '%gloo%' AND backend NOT ILIKE '%nccl%') AS gloo_ranks,
  (SELECT STRING_AGG(DISTINCT backend, ', ' ORDER BY backend) FROM kineto) AS backend,
  (
    SELECT COUNT(*) FROM recorded AS d
    WHERE EXISTS (SELECT 1 FROM raw.operation_input AS o WHERE o.source_id = d.source_id)
      OR EXISTS (
        SELECT 1 FROM raw.profile AS f WHERE f.source_id = d.source_id AND (f.metadata->>'record_shapes') = '1'
      )
  ) AS shaped,
  (SELECT COUNT(*) FROM kineto WHERE (metadata->>'with_stack') = '1') AS stacked,
  (SELECT COUNT(*) FROM align.step WHERE run_id = $run_id AND is_marked) AS marked_steps,
  (SELECT COUNT(*) FROM align.step WHERE run_id = $run_id AND origin = 'profiler_step') AS profiler_steps,
  (SELECT COUNT(*) FROM align.step WHERE run_id = $run_id AND origin = 'annotation' AND annotation LIKE '%#%')
    AS counted_steps,
  (SELECT COUNT(*) FROM iteration) AS iterations,
  (SELECT COUNT(*) FROM iteration WHERE NOT is_warmup AND NOT is_partial) AS judged,
  (SELECT COUNT(*) FROM iteration WHERE is_warmup) AS warmup,
  (SELECT COUNT(*) FROM iteration WHERE ranks < (SELECT COUNT(*) FROM recorded)) AS uncommon,
  (SELECT CAST(AVG(duration_ns) AS BIGINT) FROM iteration WHERE NOT is_warmup AND NOT is_partial) AS iteration_ns,
  (SELECT COUNT(*) FROM call) AS calls,
  (SELECT COUNT(*) FROM call WHERE is_recorded) AS recorded_calls,
  (SELECT COUNT(process_group_name) FROM call WHERE is_recorded) AS grouped,
  (SELECT COUNT(stated_sequence) FROM call WHERE is_recorded) AS sequenced,
  (SELECT COUNT(size_bytes) FROM call WHERE is_recorded) AS sized,
  (SELECT COUNT(DISTINCT match_id) FROM timeline.collective WHERE run_id = $run_id) AS collectives,
  (SELECT matched_share FROM timeline.matching WHERE run_id = $run_id) AS matched_share,
  (SELECT COUNT(*) FROM align.clock WHERE run_id = $run_id AND status = 'unaligned') AS unaligned,
  (SELECT MAX(residual_ns) FROM align.clock WHERE run_id = $run_id) AS residual_ns,
  (SELECT COUNT(*) FROM log) AS nccl_logs,
  (SELECT COUNT(*) FROM raw.nccl_link SEMI JOIN log USING (source_id)) AS nccl_links,
  (SELECT COUNT(*) FROM raw.nccl_tuning SEMI JOIN log USING (source_id))
    + (SELECT COUNT(algorithm) FROM raw.collective_choice SEMI JOIN recorded USING (source_id)) AS nccl_choices,
  (
    SELECT COUNT(*)
    FROM meta.source AS s
    WHERE s.run_id = $run_id AND (
      s.kind = 'telemetry'
      -- Recordings of traceforge.live read their rank's device themselves.
      OR EXISTS (SELECT 1 FROM fabric.telemetry_series AS t WHERE t.source_id = s.source_id AND t.metric = 'sm_clock_mhz')
    )
  ) AS telemetry_files,
  (
    SELECT COUNT(DISTINCT t.rank)
    FROM fabric.telemetry_series AS t
    JOIN fabric.telemetry_lag AS l USING (run_id, source_id)
    WHERE t.run_id = $run_id AND t.metric = 'sm_clock_mhz' AND l.status IN ('measured', 'assumed', 'no_times')
  ) AS telemetry_ranks,
  (SELECT COUNT(*) FROM meta.source WHERE run_id = $run_id AND kind IN ('pytorch_et', 'chakra')) AS execution_traces,
  (SELECT COUNT(DISTINCT rank) FROM graph.link WHERE run_id = $run_id AND is_accepted) AS linked_ranks,
  -- What is left out on purpose is no loss.
  (SELECT COALESCE(SUM(lost_events), 0) FROM issue WHERE severity <> 'info') AS lost_events,
  (
    SELECT STRING_AGG(code, ', ' ORDER BY code) FROM issue
    WHERE (lost_events > 0 AND severity <> 'info') OR code LIKE '%truncat%' OR code LIKE '%repair%' OR severity = 'error'
  ) AS damage
