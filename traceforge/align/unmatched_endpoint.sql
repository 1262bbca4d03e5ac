-- Every send or receive without its other end, and why.
-- Scope: run
CREATE OR REPLACE TABLE align.unmatched_endpoint (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank.
  rank,
  -- Joins align.endpoint.endpoint_id within the rank.
  endpoint_id,
  -- Call that carries it out; joins align.call.call_id; NULL where there is none.
  call_id,
  -- not_launched (its kernel is not there, or was launched outside of the window), cut_off (the file ends in the middle,
  -- and a part may be missing), communicator_unknown, peer_unknown (nothing names the other rank), peer_unrecorded (the
  -- other rank's file is not there), peer_cut_off (it ends in the middle) or no_partner (more sends than receives, or the
  -- other way round, or of other sizes).
  reason
) AS
SELECT
  e.run_id, e.rank, e.endpoint_id, c.call_id,
  CASE
    WHEN c.call_id IS NULL OR NOT c.is_linked THEN 'not_launched'
    WHEN NOT c.is_intact THEN 'cut_off'
    WHEN k.communicator_id IS NULL THEN 'communicator_unknown'
    WHEN e.peer IS NULL AND e.peer_place IS NULL AND k.size > 2 THEN 'peer_unknown'
    WHEN p.rank IS NULL THEN 'peer_unrecorded'
    WHEN p.raw_intact_ns IS NOT NULL THEN 'peer_cut_off'
    ELSE 'no_partner'
  END
FROM align.endpoint AS e
ANTI JOIN (
  SELECT run_id, source_rank AS rank, source_endpoint_id AS endpoint_id FROM align.message
  UNION ALL
  SELECT run_id, destination_rank, destination_endpoint_id FROM align.message
) AS found USING (run_id, rank, endpoint_id)
LEFT JOIN align.call AS c
  ON c.run_id = e.run_id AND c.rank = e.rank AND c.source_id = e.source_id AND c.event_id = e.carrier_event_id
LEFT JOIN align.membership AS m ON m.run_id = c.run_id AND m.rank = c.rank AND m.call_id = c.call_id
LEFT JOIN align.communicator AS k ON k.run_id = m.run_id AND k.communicator_id = m.communicator_id
LEFT JOIN align.rank AS p
  ON p.run_id = e.run_id
  AND p.rank = COALESCE(
    e.peer, k.ranks[e.peer_place + 1], CASE WHEN k.size = 2 THEN k.ranks[IF(k.ranks[1] = e.rank, 2, 1)] END
  )
ORDER BY e.run_id, e.rank, e.endpoint_id
