-- Where one more rank stops paying, by all models together.
SELECT
  knee,
  ranks
FROM (
  UNPIVOT (
    SELECT
      knee_50,
      knee_70,
      peak
    FROM forecast.fit
    WHERE run_id = $run_id AND model = 'ensemble'
  ) ON COLUMNS(*) INTO NAME knee VALUE ranks
)
ORDER BY knee
