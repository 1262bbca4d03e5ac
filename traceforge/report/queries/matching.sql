-- Collectives, those of which every member's part was found, the share of calls matched, and how much was recorded.
SELECT
  COUNT(DISTINCT match_id) AS collectives,
  COUNT(DISTINCT match_id) FILTER (complete) AS complete,
  (SELECT k.matched_share FROM timeline.matching AS k WHERE k.run_id = $run_id) AS matched_share,
  (SELECT k.ranks FROM timeline.coverage AS k WHERE k.run_id = $run_id) AS ranks,
  (SELECT y.layout FROM timeline.layout AS y WHERE y.run_id = $run_id AND y.axes > 1) AS layout,
  (SELECT k.truncated_ranks FROM timeline.coverage AS k WHERE k.run_id = $run_id) AS truncated_ranks,
  (SELECT k.job_ranks FROM timeline.coverage AS k WHERE k.run_id = $run_id) AS job_ranks,
  (SELECT k.unsplit_share FROM timeline.coverage AS k WHERE k.run_id = $run_id) AS unsplit_share,
  (SELECT k.is_split FROM timeline.coverage AS k WHERE k.run_id = $run_id) AS is_split
FROM timeline.collective
WHERE run_id = $run_id
