-- Of a history: loss by cause above each run's reference: share of an iteration; with devices, GPU-hours a day of jobs.
WITH job AS (
  SELECT job, COUNT(*) AS runs FROM history.run WHERE has_devices GROUP BY job
)
SELECT loss.mode, loss.cause, COUNT(*) AS runs, AVG(loss.share) AS mean_share,
  -- Runs of a job follow one another: a day is one of them, not all at once.
  SUM(24 * run.ranks * loss.share / job.runs) FILTER (WHERE run.has_devices) AS lost_gpu_hours_per_day
FROM history.run AS run
JOIN history.loss AS loss USING (run_key)
LEFT JOIN job ON job.job = run.job
GROUP BY loss.mode, loss.cause
ORDER BY mean_share DESC, loss.mode, loss.cause
