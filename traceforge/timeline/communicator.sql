-- One row a group of ranks that communicates.
-- Scope: run
CREATE OR REPLACE TABLE timeline.communicator (
  -- Joins meta.run.run_id.
  run_id,
  -- Small integer within the run.
  communicator_id,
  -- Member ranks, ascending, whether or not their traces are here.
  ranks,
  -- Number of members that are known.
  size,
  -- Process group name; empty where the trace states none.
  name,
  -- Description from the job's list of process groups; empty where there is none.
  description,
  -- How the membership is known: stated, assumed, inferred or unknown (see align.communicator).
  origin,
  -- Number of members whose traces are here.
  recorded,
  -- Collective calls, sends and receives of members whose traces are here.
  call_count,
  -- Of these, the share that was matched across ranks; NULL where only one of several members was recorded.
  matched_share
) AS
WITH called AS (
  -- A call that carries several sends and receives counts as so many.
  SELECT m.run_id, m.communicator_id, m.rank,
    CASE
      WHEN e.endpoint_id IS NOT NULL THEN NOT EXISTS (
        SELECT 1 FROM align.unmatched_endpoint AS u
        WHERE u.run_id = e.run_id AND u.rank = e.rank AND u.endpoint_id = e.endpoint_id
      )
      ELSE EXISTS (SELECT 1 FROM align.match AS x WHERE x.run_id = m.run_id AND x.rank = m.rank AND x.call_id = m.call_id)
    END AS is_matched
  FROM align.membership AS m
  JOIN align.call AS c USING (run_id, rank, call_id)
  LEFT JOIN align.endpoint AS e
    ON e.run_id = c.run_id AND e.rank = c.rank AND e.source_id = c.source_id AND e.carrier_event_id = c.event_id
),
counted AS (
  SELECT run_id, communicator_id, COUNT(DISTINCT rank) AS recorded, COUNT(*) AS call_count,
    COUNT(*) FILTER (is_matched) AS matched_count
  FROM called
  GROUP BY ALL
)
SELECT
  k.run_id, k.communicator_id, k.ranks, k.size, k.name, k.description, k.origin, c.recorded, c.call_count,
  CASE WHEN c.recorded > 1 OR (k.size = 1 AND k.origin <> 'unknown') THEN c.matched_count / c.call_count END
FROM align.communicator AS k
JOIN counted AS c USING (run_id, communicator_id)
ORDER BY k.run_id, k.communicator_id
