-- What bounds the job, in a sentence.
SELECT
  bound,
  share,
  sentence,
  next_step
FROM attribute.bound
WHERE run_id = $run_id
  AND rank IS NULL
ORDER BY bound
