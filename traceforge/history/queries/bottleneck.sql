-- The waterfall of the whole job.
SELECT place, bound, is_avoidable, duration_ns_per_iteration, share
FROM attribute.bottleneck
WHERE run_id = $run_id AND rank IS NULL
ORDER BY place
