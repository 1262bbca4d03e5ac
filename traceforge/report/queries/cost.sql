-- What each finding costs a day at this pace: GPU-hours, one GPU a rank (rank-hours without devices), and money where a price is given.
WITH job AS (
  SELECT
    COALESCE(
      (SELECT world_size FROM meta.run WHERE run_id = $run_id),
      (SELECT COUNT(*) FROM align.rank WHERE run_id = $run_id)
    ) AS gpus,
    (SELECT pace_ns FROM attribute.pace WHERE run_id = $run_id) AS pace_ns,
    (SELECT COALESCE(BOOL_OR(has_device), false) FROM align.rank WHERE run_id = $run_id) AS has_devices,
    $price_per_1000_gpu_hours / 1000 AS price_per_gpu_hour
)
SELECT
  finding.finding_id,
  job.gpus,
  job.has_devices,
  job.pace_ns,
  finding.delay_ns_per_iteration / job.pace_ns AS share,
  24 * job.gpus AS gpu_hours_per_day,
  24 * job.gpus * finding.delay_ns_per_iteration / job.pace_ns AS lost_gpu_hours_per_day,
  24 * job.gpus * finding.delay_low_ns / job.pace_ns AS low_gpu_hours_per_day,
  24 * job.gpus * finding.delay_high_ns / job.pace_ns AS high_gpu_hours_per_day,
  24 * job.gpus * finding.delay_ns_per_iteration / job.pace_ns * job.price_per_gpu_hour AS lost_money_per_day,
  24 * job.gpus * finding.delay_low_ns / job.pace_ns * job.price_per_gpu_hour AS low_money_per_day,
  24 * job.gpus * finding.delay_high_ns / job.pace_ns * job.price_per_gpu_hour AS high_money_per_day
FROM attribute.finding AS finding
CROSS JOIN job
WHERE finding.run_id = $run_id
ORDER BY finding.finding_id
