-- How much communication has its partners: one row a run that communicates.
--
-- Collective calls, and of calls that send and receive what they carry.
-- Scope: run
CREATE OR REPLACE VIEW align.partner_count (
  -- Joins meta.run.run_id.
  run_id,
  -- Calls of communication of all ranks, > 0.
  calls,
  -- Of these, those that no other rank's call was found for.
  unmatched
) AS
WITH call AS (
  SELECT c.run_id, COUNT(*) AS calls
  FROM align.call AS c
  LEFT JOIN align.endpoint AS e
    ON e.run_id = c.run_id AND e.rank = c.rank AND e.source_id = c.source_id AND e.carrier_event_id = c.event_id
  GROUP BY c.run_id
),
collective AS (
  SELECT u.run_id, COUNT(*) AS unmatched
  FROM align.unmatched AS u
  JOIN align.call AS c USING (run_id, rank, call_id)
  ANTI JOIN align.endpoint AS e
    ON e.run_id = c.run_id AND e.rank = c.rank AND e.source_id = c.source_id AND e.carrier_event_id = c.event_id
  GROUP BY u.run_id
),
message AS (
  SELECT run_id, COUNT(*) AS unmatched FROM align.unmatched_endpoint WHERE call_id IS NOT NULL GROUP BY run_id
)
SELECT run_id, call.calls, COALESCE(collective.unmatched, 0) + COALESCE(message.unmatched, 0) AS unmatched
FROM call
LEFT JOIN collective USING (run_id)
LEFT JOIN message USING (run_id)
