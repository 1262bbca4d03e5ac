-- Restarts of this job that its runs show: repeated iterations, and the time between.
SELECT
  earlier.run_name,
  restart.repeated_iterations,
  restart.repeated_ns,
  restart.gap_ns
FROM forecast.restart AS restart
JOIN meta.run AS earlier ON earlier.run_id = restart.earlier_run_id
WHERE restart.run_id = $run_id
ORDER BY restart.gap_ns, earlier.run_name
