-- Terms of a mean iteration that a scaling model is made of.
SELECT
  term,
  duration_ns AS duration_ns_per_iteration,
  duration_ns / SUM(duration_ns) OVER () AS share
FROM (
  UNPIVOT (
    SELECT
      compute_ns AS compute,
      exposed_transfer_ns AS exposed_transfer,
      waiting_ns AS waiting,
      communication_ns AS communication,
      copy_ns AS copy,
      input_ns AS input,
      runtime_ns AS runtime,
      idle_ns AS idle
    FROM forecast.point
    WHERE run_id = $run_id
  ) ON COLUMNS(*) INTO NAME term VALUE duration_ns
)
WHERE duration_ns > 0
ORDER BY duration_ns DESC, term
