-- Calls of collectives, sends and receives in NCCL's logs: one row per call of a rank, numbered in order.
-- Scope: run
CREATE OR REPLACE TABLE fabric.operation (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins fabric.communicator.communicator_id within the run.
  communicator_id,
  -- Rank in the communicator; NULL when unknown.
  rank,
  -- Counter of this rank's collectives (or sends and receives) in this communicator, from 0; ours, not NCCL's.
  sequence,
  -- all_reduce, all_gather, reduce_scatter, broadcast, reduce, send, recv, ...
  op,
  -- Elements, as the call states them.
  element_count,
  -- Element type; the number as text where unknown.
  datatype,
  -- element_count times the size of an element; NULL where the type is unknown.
  size_bytes,
  -- Root rank; the peer of a send or receive.
  root,
  -- opCount as printed, which is no sequence number.
  op_count,
  -- When the host called it, ns on the host's clock; NULL without time stamps.
  raw_time_ns,
  -- Joins meta.source.source_id.
  source_id,
  -- Joins raw.nccl_record.record_id within the source.
  record_id,
  -- Line of the log, from 1.
  line
) AS
WITH twofold AS (
  -- Subsystems COLL and CALL may state each call twice; COLL says more.
  SELECT source_id, BOOL_OR(stated_by = 'coll') AS has_coll FROM raw.nccl_collective_call GROUP BY source_id
)
SELECT
  m.run_id, m.communicator_id, m.rank,
  ROW_NUMBER() OVER (
    PARTITION BY m.run_id, m.communicator_id, m.rank, m.process, c.op IN ('Send', 'Recv')
    ORDER BY c.source_id, c.record_id
  ) - 1,
  LOWER(REGEXP_REPLACE(c.op, '([a-z])([A-Z])', '\1_\2', 'g')),
  c.element_count, c.datatype, c.size_bytes, c.root, c.op_count, r.raw_time_ns, c.source_id, c.record_id, r.line
FROM raw.nccl_collective_call AS c
JOIN twofold AS t USING (source_id)
JOIN fabric.member AS m ON m.source_id = c.source_id AND m.handle_id = c.handle_id
JOIN raw.nccl_record AS r ON r.source_id = c.source_id AND r.record_id = c.record_id
WHERE c.stated_by = 'coll' OR NOT t.has_coll
