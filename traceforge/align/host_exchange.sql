-- Sends and receives that a host awaits together: one row each, of those that share a call with others.
--
-- A host has no kernel that carries several messages. They are together (batch_isend_irecv) where it issues one before
-- another one is done, does nothing between them, and nothing after them before all are done. Each record ends when its
-- message was asked for, one after the other, so that only the last end is one that the rank was blocked until.
-- Scope: rank
-- Reads: align.rank, align.name_class
CREATE OR REPLACE TABLE align.host_exchange (
  -- Joins meta.source.source_id.
  source_id,
  -- The host's work (gloo:send); joins raw.event.event_id within the source.
  event_id,
  -- The first of those that are awaited together; joins raw.event.event_id within the source.
  carrier_event_id,
  -- When the last of them ends, ns on the rank's own clock.
  raw_end_ns
) AS
WITH class AS (
  SELECT *
  FROM align.name_class
  WHERE class IN ('operation', 'host_communication')
    AND EXISTS (SELECT 1 FROM align.name_class WHERE class = 'host_communication' AND op IN ('send', 'recv'))
),
event AS (
  SELECT e.source_id, e.event_id, e.track_id, e.raw_start_ns, e.raw_start_ns + COALESCE(e.duration_ns, 0) AS raw_end_ns,
    c.class, c.op
  FROM align.rank AS r
  JOIN raw.event AS e USING (source_id)
  JOIN class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
  WHERE e.phase = 'X' AND e.raw_start_ns IS NOT NULL
),
-- With when the thread next does something else; NULL where it does not.
message AS (
  SELECT m.*, o.raw_start_ns AS until_ns
  FROM (SELECT * FROM event WHERE class = 'host_communication' AND op IN ('send', 'recv')) AS m
  ASOF LEFT JOIN (SELECT * FROM event WHERE class = 'operation') AS o
    ON o.source_id = m.source_id AND o.track_id = m.track_id AND m.raw_start_ns < o.raw_start_ns
),
begun AS (
  SELECT *,
    raw_start_ns >= COALESCE(MAX(raw_end_ns) OVER (own ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), raw_start_ns)
      AS is_first
  FROM message
  WHERE raw_end_ns <= until_ns OR until_ns IS NULL
  WINDOW own AS (PARTITION BY source_id, track_id, until_ns ORDER BY raw_start_ns, event_id)
),
numbered AS (
  SELECT *, COUNT(*) FILTER (is_first) OVER (
    PARTITION BY source_id, track_id, until_ns ORDER BY raw_start_ns, event_id
  ) AS number
  FROM begun
)
SELECT
  source_id,
  event_id,
  FIRST_VALUE(event_id) OVER (own ORDER BY raw_start_ns, event_id),
  MAX(raw_end_ns) OVER own
FROM numbered
WINDOW own AS (PARTITION BY source_id, track_id, until_ns, number)
QUALIFY COUNT(*) OVER own > 1
ORDER BY source_id, event_id
