-- The watched metrics of every run, by series: one job, as many ranks, the same devices and layout.
SELECT
  run.run_key,
  run.run_name,
  run.job,
  CONCAT_WS(', ', run.job, run.ranks || ' ranks', run.device, run.layout) AS series,
  run.commit_id,
  run.recorded_ns,
  metric.metric,
  -- What was measured in part only is no value.
  CASE WHEN metric.unknown = 0 THEN metric.value END AS value,
  metric.low,
  metric.high
FROM history.run AS run
JOIN history.metric AS metric USING (run_key)
WHERE metric.metric IN ('iteration_ms', 'p95_ms', 'exposed_communication_share', 'delay_share')
-- To the minute: clocks of runs that began together say nothing of their order.
ORDER BY ROUND(COALESCE(run.recorded_ns, run.added_ns) / 60e9), run.sequence, metric.metric
