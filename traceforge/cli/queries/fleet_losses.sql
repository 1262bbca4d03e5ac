-- Of a history: time above each run's own reference by cause, mean share of the iteration; with devices, GPU-hours a day.
SELECT loss.mode, loss.cause, COUNT(*) AS runs, AVG(loss.share) AS mean_share,
  SUM(24 * run.ranks * loss.share) FILTER (WHERE run.has_devices) AS lost_gpu_hours_per_day
FROM history.run AS run
JOIN history.loss AS loss USING (run_key)
GROUP BY loss.mode, loss.cause
ORDER BY mean_share DESC, loss.mode, loss.cause
