-- The runs of the history in order of time: recorded, or added where their clocks show no date.
SELECT run_key, run_name, job, commit_id, recorded_ns, ranks, hosts, device, layout, verdict, confidence, headline
FROM history.run
ORDER BY COALESCE(recorded_ns, added_ns), sequence
