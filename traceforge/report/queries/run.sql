-- The run, the number of ranks it says it has, and whether its traces mark steps.
SELECT
  run_name,
  world_size,
  EXISTS (SELECT 1 FROM align.step WHERE run_id = $run_id AND is_marked) AS has_steps
FROM meta.run
WHERE run_id = $run_id
