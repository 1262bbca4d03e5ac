-- What flight recorder dumps say of a hang, the most important first.
SELECT
  kind,
  summary,
  detail,
  next_step,
  stack
FROM fabric.hang
WHERE run_id = $run_id
ORDER BY place
