-- The runs of the history in order of time: recorded, or added where their clocks show no date.
SELECT run_key, run_name, job, commit_id, recorded_ns, ranks, hosts, device, layout, verdict, confidence, headline
FROM history.run
-- To the minute: clocks of runs that began together say nothing of their order.
ORDER BY ROUND(COALESCE(recorded_ns, added_ns) / 60e9), sequence
