-- Couplings that could make pacing pay, and whether this run tells their size.
-- Reads: timeline.collective
CREATE OR REPLACE TABLE replay.calibration (
  -- Joins meta.run.run_id.
  run_id,
  -- Coupling: arrival_spread (transfers grow with the spread of arrivals).
  mechanism,
  -- Extra transfer per mean wait, dimensionless; NULL while it is not measured.
  coefficient,
  -- Lower end of its 95 % interval; NULL while it is not measured.
  low,
  -- Upper end of its 95 % interval; NULL while it is not measured.
  high,
  -- Collectives it could be measured on.
  n,
  -- identifiable or not_identifiable.
  verdict,
  -- Why.
  reason
) AS
SELECT
  r.run_id,
  'arrival_spread',
  CAST(NULL AS DOUBLE),
  CAST(NULL AS DOUBLE),
  CAST(NULL AS DOUBLE),
  COUNT(c.collective_id),
  'not_identifiable',
  'This version does not measure whether transfers grow with the spread of arrivals; a plain regression would be biased.'
FROM meta.run AS r
LEFT JOIN timeline.collective AS c ON c.run_id = r.run_id AND c.iteration IS NOT NULL
GROUP BY r.run_id
ORDER BY r.run_id
