-- Names of the run's devices, where its traces state them.
SELECT DISTINCT device
FROM operation.device
WHERE run_id = $run_id AND device IS NOT NULL
ORDER BY device
