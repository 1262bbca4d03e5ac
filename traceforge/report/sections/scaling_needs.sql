-- What must be measured before a scaling curve can be drawn.
SELECT
  item,
  why
FROM forecast.need
WHERE run_id = $run_id
ORDER BY item, why
