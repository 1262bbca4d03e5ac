-- What a run is and what was said of it, in one row.
WITH rank AS (SELECT rank, host, has_device FROM align.rank WHERE run_id = $run_id),
judged AS (
  SELECT COUNT(*) AS iterations, AVG(duration_ns) AS mean_iteration_ns
  FROM timeline.iteration
  WHERE run_id = $run_id AND NOT is_warmup AND NOT is_partial
),
axis AS (
  SELECT axis, COUNT(DISTINCT coordinate) AS size FROM timeline.mesh WHERE run_id = $run_id GROUP BY axis
)
SELECT
  run.run_name,
  COALESCE(run.world_size, (SELECT COUNT(*) FROM rank)) AS ranks,
  (SELECT COUNT(*) FROM rank) AS recorded_ranks,
  (SELECT COUNT(DISTINCT host) FROM rank) AS hosts,
  (SELECT COALESCE(BOOL_OR(has_device), false) FROM rank) AS has_devices,
  (SELECT STRING_AGG(DISTINCT device, ', ' ORDER BY device) FROM operation.device WHERE run_id = $run_id) AS device,
  (SELECT STRING_AGG(axis || '=' || size, ', ' ORDER BY axis) FROM axis) AS layout,
  -- Clocks that show a date before 2001 do not count from 1970.
  (
    SELECT CASE WHEN MIN(start_ns) >= 1_000_000_000_000_000_000 THEN MIN(start_ns) END
    FROM timeline.iteration WHERE run_id = $run_id
  ) AS recorded_ns,
  judged.iterations,
  judged.mean_iteration_ns,
  verdict.kind AS verdict,
  verdict.confidence,
  verdict.headline,
  verdict.delay_share,
  (
    SELECT smallest_delay_ns_per_iteration FROM attribute.sight
    WHERE run_id = $run_id AND subject_kind = 'rank' AND cause = 'slow_compute' AND pattern = 'persistent'
  ) AS sight_ns,
  (SELECT bound FROM attribute.bottleneck WHERE run_id = $run_id AND rank IS NULL AND place = 1 AND is_avoidable) AS bound
FROM meta.run AS run
CROSS JOIN judged
LEFT JOIN attribute.verdict AS verdict USING (run_id)
WHERE run.run_id = $run_id
