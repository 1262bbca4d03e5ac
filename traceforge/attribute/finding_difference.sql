-- What the culprit of a finding does more, or more slowly, than the median rank: one row a finding and thing, largest first.
--
-- Findings about a rank alone: of slow compute what it computes, of other causes the gaps of its device.
-- Scope: run
CREATE OR REPLACE VIEW attribute.finding_difference (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins attribute.finding.finding_id within the run.
  finding_id,
  -- Global rank.
  rank,
  -- 1 for what costs the rank most.
  place,
  -- more_work, slower_execution, new_operation or gap, as in operation.difference.
  kind,
  -- Operation, kernel or cause of the gaps.
  name,
  -- Whether it explains enough of the finding's delay to be named.
  explains,
  -- Time above the median rank, ns an iteration.
  excess_ns_per_iteration,
  -- Its calls an iteration.
  calls,
  -- Those of the median rank.
  peer_calls,
  -- Its mean time of a call, ns.
  call_duration_ns,
  -- That of the median rank; NULL where that has no calls.
  peer_call_duration_ns,
  -- Call to the runtime or driver that fills most of the gaps; NULL where none does, and for work.
  gap_call,
  -- How much of the gaps it fills, ns an iteration; NULL likewise.
  gap_call_ns_per_iteration
) AS
SELECT
  f.run_id,
  f.finding_id,
  d.rank,
  ROW_NUMBER() OVER (PARTITION BY f.run_id, f.finding_id ORDER BY d.place) AS place,
  d.kind,
  d.name,
  d.excess_ns_per_iteration
    >= (SELECT value FROM meta.threshold WHERE name = 'attribute.NAMED_SHARE') * f.delay_ns_per_iteration AS explains,
  d.excess_ns_per_iteration,
  d.calls,
  d.peer_calls,
  d.call_duration_ns,
  d.peer_call_duration_ns,
  d.gap_call,
  d.gap_call_ns_per_iteration
FROM attribute.finding AS f
JOIN operation.difference AS d ON d.run_id = f.run_id AND CAST(d.rank AS VARCHAR) = f.subject
WHERE f.subject_kind = 'rank' AND (f.cause = 'slow_compute') = (d.kind <> 'gap')
ORDER BY f.run_id, f.finding_id, d.place
