-- The run and the number of ranks it says it has.
SELECT
  run_name,
  world_size
FROM meta.run
WHERE run_id = $run_id
