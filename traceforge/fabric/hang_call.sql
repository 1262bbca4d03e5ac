-- Calls of the flight recorder dumps used, and how far each got: one row a call.
-- PyTorch records the parts of a batch (batch_isend_irecv, a coalescing manager) before the batch itself, an entry named
-- `coalesced` with their number, and follows the batch alone: its parts stay scheduled for ever. They got as far as it.
-- Scope: run
CREATE OR REPLACE TABLE fabric.hang_call (
  -- Joins meta.run.run_id.
  run_id,
  -- Global rank, from 0.
  rank,
  -- Joins meta.source.source_id: the rank's dump.
  source_id,
  -- Joins raw.flight_recorder_entry.entry_id within the source.
  entry_id,
  -- Position among the calls of the rank, from 1, in the order in which it made them.
  place,
  -- Name of the process group; NULL where not stated.
  process_group_name,
  -- Number among the group's collectives; of a send or receive that of the last collective before it.
  collective_sequence,
  -- Whether it is a send, a receive, or a batch of them.
  is_message,
  -- Whether it is a batch whose parts are rows of their own.
  is_batch,
  -- Position of the batch that it is a part of; NULL where it is none.
  batch_place,
  -- scheduled, started or completed; NULL where the dump does not tell.
  state,
  -- Whether its start is recorded, so that one that is scheduled has not started.
  has_start
) AS
WITH numbered AS (
  SELECT
    d.run_id, d.rank, e.source_id, e.entry_id, e.process_group_name, e.collective_sequence, e.p2p_sequence,
    COALESCE(e.is_p2p, false) AS is_message, e.name, e.raw_noticed_start_ns,
    ROW_NUMBER() OVER (PARTITION BY e.source_id ORDER BY e.record_number NULLS LAST, e.entry_id) AS place,
    SPLIT_PART(e.name, ':', 2) = 'coalesced' AS is_coalesced,
    COALESCE(e.state, CASE WHEN e.is_retired OR e.raw_noticed_end_ns IS NOT NULL THEN 'completed' END) AS state
  FROM raw.flight_recorder_entry AS e
  JOIN fabric.hang_dump AS d USING (source_id)
),
followed AS (
  SELECT
    n.*,
    MIN(CASE WHEN n.is_coalesced THEN n.place END) OVER (
      PARTITION BY n.source_id, n.process_group_name ORDER BY n.place ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    ) AS next_batch,
    -- Backends other than NCCL record no entry for a batch: of its parts, which share a number, nothing is known.
    n.is_message AND NOT STARTS_WITH(n.name, 'nccl:') AND COUNT(*) OVER (
      PARTITION BY n.source_id, n.process_group_name, n.is_message, n.p2p_sequence
    ) > 1 AS is_lone_part
  FROM numbered AS n
),
parted AS (
  SELECT
    f.*, b.place AS batch_place, b.state AS batch_state
  FROM followed AS f
  LEFT JOIN numbered AS b
    ON b.source_id = f.source_id AND b.place = f.next_batch AND b.place > f.place AND f.is_message = b.is_message
    AND CASE
      WHEN f.is_message THEN b.p2p_sequence = f.p2p_sequence
      ELSE b.collective_sequence = f.collective_sequence
    END
)
SELECT
  p.run_id, p.rank, p.source_id, p.entry_id, p.place, p.process_group_name, p.collective_sequence, p.is_message,
  COALESCE(p.is_coalesced, false) AND p.place IN (
    SELECT o.batch_place FROM parted AS o WHERE o.source_id = p.source_id AND o.batch_place IS NOT NULL
  ),
  p.batch_place,
  CASE
    WHEN p.batch_place IS NOT NULL THEN p.batch_state
    WHEN NOT p.is_lone_part OR p.state = 'completed' THEN p.state
  END,
  BOOL_OR(p.raw_noticed_start_ns IS NOT NULL OR p.state = 'started') OVER (PARTITION BY p.source_id)
FROM parted AS p
