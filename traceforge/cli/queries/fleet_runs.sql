-- Of a history: every run with its verdict and mean iteration, in order of time.
SELECT run.job, run.run_name, run.commit_id, run.ranks, run.hosts, run.verdict, run.confidence,
  run.mean_iteration_ns / 1e6 AS iteration_ms, run.delay_share, run.headline
FROM history.run AS run
ORDER BY COALESCE(run.recorded_ns, run.added_ns), run.sequence
