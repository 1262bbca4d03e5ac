-- GPU-hours above each run's own reference by job and cause: of jobs with devices; a day at the recorded pace, and in all where --hours was given.
SELECT
  run.job,
  loss.mode,
  loss.cause,
  COUNT(*) AS runs,
  -- Each rank is taken to be one GPU.
  SUM(24 * run.ranks * loss.share) AS lost_gpu_hours_per_day,
  SUM(run.hours * run.ranks * loss.share) AS lost_gpu_hours,
  COUNT(run.hours) AS runs_with_hours,
  SUM(run.ranks * loss.share) / SUM(run.ranks) AS share
FROM history.run AS run
JOIN history.loss AS loss USING (run_key)
WHERE run.has_devices
GROUP BY run.job, loss.mode, loss.cause
ORDER BY lost_gpu_hours_per_day DESC, run.job, loss.mode, loss.cause
