-- What the dependency graph gives back when it is replayed, all ranks together and each rank.
SELECT scenario, rank, label, rank_count, measured_ns, replayed_ns, difference
FROM graph.baseline
WHERE run_id = $run_id
ORDER BY scenario, rank NULLS FIRST
