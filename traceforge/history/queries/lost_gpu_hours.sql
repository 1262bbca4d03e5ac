-- GPU-hours above each run's own reference by job and cause: of jobs with devices; a day of the job at the mean pace of its runs, and in all where --hours was given.
WITH job AS (
  SELECT job, COUNT(*) AS runs FROM history.run WHERE has_devices GROUP BY job
)
SELECT
  run.job,
  loss.mode,
  loss.cause,
  COUNT(*) AS runs,
  -- Each rank is taken to be one GPU. Runs of a job follow one another: a day is one of them, not all at once.
  SUM(24 * run.ranks * loss.share) / ANY_VALUE(job.runs) AS lost_gpu_hours_per_day,
  SUM(run.hours * run.ranks * loss.share) AS lost_gpu_hours,
  COUNT(run.hours) AS runs_with_hours,
  SUM(run.ranks * loss.share) / SUM(run.ranks) AS share
FROM history.run AS run
JOIN history.loss AS loss USING (run_key)
JOIN job ON job.job = run.job
WHERE run.has_devices
GROUP BY run.job, loss.mode, loss.cause
ORDER BY lost_gpu_hours_per_day DESC, run.job, loss.mode, loss.cause
