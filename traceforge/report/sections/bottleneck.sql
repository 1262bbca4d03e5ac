-- Parts of a mean iteration of the job, from what the device could do to what was measured; they sum to it.
SELECT place, bound, is_avoidable, duration_ns_per_iteration AS duration_ns, share, basis
FROM attribute.bottleneck
WHERE run_id = $run_id AND rank IS NULL
ORDER BY place
