-- Every call that communicates without partners on other ranks, and why.
-- Scope: run
CREATE OR REPLACE TABLE align.unmatched (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Joins align.call.call_id within the rank.
  call_id,
  -- Joins align.communicator.communicator_id; NULL when the communicator is unknown.
  communicator_id,
  -- cut_off (the file ends in the middle, and a part of the call may be missing), not_launched (before the window, or
  -- outside of any call), communicator_unknown, no_partner, or of calls that send and receive the first of the reasons
  -- in align.unmatched_endpoint.
  reason
) AS
SELECT
  c.run_id, c.rank, c.call_id, m.communicator_id,
  CASE
    WHEN NOT c.is_intact THEN 'cut_off'
    WHEN NOT c.is_linked THEN 'not_launched'
    WHEN m.communicator_id IS NULL THEN 'communicator_unknown'
    ELSE COALESCE(e.reason, 'no_partner')
  END
FROM align.call AS c
ANTI JOIN align.match USING (run_id, rank, call_id)
LEFT JOIN align.membership AS m USING (run_id, rank, call_id)
LEFT JOIN (
  SELECT run_id, rank, call_id, ARG_MIN(reason, endpoint_id) AS reason FROM align.unmatched_endpoint GROUP BY ALL
) AS e USING (run_id, rank, call_id)
ORDER BY c.run_id, c.rank, c.call_id
