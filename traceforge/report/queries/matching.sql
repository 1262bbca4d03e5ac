-- Collectives matched across ranks, and those of which every member's part was found.
SELECT
  COUNT(*) AS collectives,
  COUNT(*) FILTER (complete) AS complete
FROM timeline.collective
WHERE run_id = $run_id
