-- Where each rank stands in the parallel layout of the job: of pp the stage.
SELECT axis, rank, coordinate
FROM timeline.mesh
WHERE run_id = $run_id
ORDER BY LIST_POSITION(['pp', 'dp', 'fsdp', 'ep', 'cp', 'tp'], axis) NULLS LAST, axis, rank
