-- The iterations that operations are counted in: those that are whole and no warm-up; where there is none, all but warm-up.
-- Scope: run
CREATE OR REPLACE VIEW operation.judged_iteration (
  -- Joins meta.run.run_id.
  run_id,
  -- Iteration number.
  iteration,
  -- False where the run has no whole iteration, so that parts of one stand in (a trace without steps, for example).
  is_whole
) AS
SELECT run_id, iteration, NOT is_partial AS is_whole
FROM timeline.iteration
WHERE NOT is_warmup
QUALIFY NOT is_partial OR BOOL_AND(is_partial) OVER (PARTITION BY run_id)
