-- Of a history: every run with its verdict and mean iteration, in order of time.
SELECT run.job, run.run_name, run.commit_id, run.ranks, run.hosts, run.verdict, run.confidence,
  run.mean_iteration_ns / 1e6 AS iteration_ms, run.delay_share, run.headline
FROM history.run AS run
-- To the minute: clocks of runs that began together say nothing of their order.
ORDER BY ROUND(COALESCE(run.recorded_ns, run.added_ns) / 60e9), run.sequence
