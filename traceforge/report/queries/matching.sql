-- Collectives matched across ranks, those of which every member's part was found, and the share of calls matched.
SELECT
  COUNT(*) AS collectives,
  COUNT(*) FILTER (complete) AS complete,
  (
    SELECT SUM(k.matched_share * k.call_count) / SUM(k.call_count)
    FROM timeline.communicator AS k
    WHERE k.run_id = $run_id
  ) AS matched_share
FROM timeline.collective
WHERE run_id = $run_id
