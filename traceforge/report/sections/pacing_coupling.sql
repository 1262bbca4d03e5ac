-- What was measured of the couplings that pacing could use.
SELECT
  mechanism,
  verdict,
  reason
FROM replay.calibration
WHERE run_id = $run_id AND mechanism = 'arrival_spread'
ORDER BY mechanism
