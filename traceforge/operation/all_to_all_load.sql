-- How much each rank sends or receives in all-to-all calls, against the median rank of its role: one row a rank with such
-- calls.
--
-- Of each call the larger side counts: an expert that gets more tokens than others receives more, and sends more back.
-- Where the trace says nothing of elements (gloo), bytes of the inputs stand in their place.
-- Scope: run
CREATE OR REPLACE TABLE operation.all_to_all_load (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Elements (bytes of inputs, where they are unknown) of all its all-to-all calls.
  amount,
  -- That over the median of the ranks of its role; 1 is even.
  ratio
) AS
WITH moved AS (
  SELECT r.run_id, r.rank, o.role,
    CAST(SUM(COALESCE(GREATEST(c.in_elements, c.out_elements), p.size_bytes)) AS BIGINT) AS amount
  FROM align.payload AS p
  JOIN align.rank AS r USING (source_id)
  JOIN timeline.role AS o ON o.run_id = r.run_id AND o.rank = r.rank
  LEFT JOIN raw.collective AS c USING (source_id, event_id)
  WHERE p.op = 'all_to_all'
  GROUP BY r.run_id, r.rank, o.role
)
SELECT run_id, rank, amount, amount / NULLIF(MEDIAN(amount) OVER (PARTITION BY run_id, role), 0)
FROM moved
WHERE amount IS NOT NULL
ORDER BY run_id, rank
