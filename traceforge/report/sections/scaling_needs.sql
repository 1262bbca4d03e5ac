-- What must be measured before a scaling curve can be drawn, and runs that are left out of it.
SELECT
  item,
  why
FROM forecast.missing_measurement
WHERE run_id = $run_id
ORDER BY item, why
