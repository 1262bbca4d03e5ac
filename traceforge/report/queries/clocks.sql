-- How each rank's clock was brought to the common one.
SELECT
  rank,
  host,
  offset_ns,
  drift_ppb,
  residual_ns,
  anchors,
  status
FROM align.clock
WHERE run_id = $run_id
ORDER BY rank
