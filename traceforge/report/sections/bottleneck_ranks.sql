-- What bounds each rank, and the job (rank NULL): the largest part that can be avoided, or its kernels.
SELECT rank, bound, share, busy_share, peak_share, modelled_share, sentence, next_step
FROM attribute.bound
WHERE run_id = $run_id
ORDER BY rank NULLS FIRST
