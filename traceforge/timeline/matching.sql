-- How much of a run's communication was matched across ranks: one row a run that communicates.
-- Scope: run
CREATE OR REPLACE VIEW timeline.matching (
  -- Joins meta.run.run_id.
  run_id,
  -- Share of collective calls, sends and receives that were matched across ranks, 0..1. Calls of which nobody knows the
  -- group count as not matched; NULL where of each group that communicates only one member was recorded.
  matched_share
) AS
WITH known AS (
  SELECT run_id, SUM(matched_share * call_count) AS matched,
    SUM(call_count) FILTER (matched_share IS NOT NULL) AS calls
  FROM timeline.communicator
  GROUP BY run_id
),
unknown AS (
  SELECT u.run_id, COUNT(*) AS calls
  FROM align.unmatched AS u
  JOIN timeline.coverage AS k USING (run_id)
  WHERE u.reason = 'communicator_unknown' AND k.ranks > 1
  GROUP BY u.run_id
)
SELECT run_id, COALESCE(k.matched, 0) / NULLIF(COALESCE(k.calls, 0) + COALESCE(u.calls, 0), 0) AS matched_share
FROM known AS k
FULL JOIN unknown AS u USING (run_id)
