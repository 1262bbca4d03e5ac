-- Hosts and NICs of every run, and whether a finding of high or medium confidence accuses them; runs of one job_id are one job.
SELECT run.run_key, COALESCE(run.job_id, run.run_key) AS job, member.kind, member.name, member.ranks, member.is_accused
FROM history.run AS run
JOIN history.member AS member USING (run_key)
-- To the minute: clocks of runs that began together say nothing of their order.
ORDER BY ROUND(COALESCE(run.recorded_ns, run.added_ns) / 60e9), run.sequence, member.kind, member.name
