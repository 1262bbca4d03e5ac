-- The verdict on the run, in words.
SELECT
  kind,
  headline,
  explanation,
  confidence,
  next_step,
  delay_share,
  is_unbalanced,
  is_common
FROM attribute.verdict
WHERE run_id = $run_id
ORDER BY ALL
