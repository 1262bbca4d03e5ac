-- Collectives whose transfer took more than twice what others of their communicator, operation and size take.
--
-- Only where there are four of a kind or more, and the difference is above three clock residuals. A message is compared
-- with those between the same two ranks, as other ranks may have another path. What has no known size is left out, and
-- so is a message that shares a kernel with others: it ends when the last of them does.
-- Scope: run
CREATE OR REPLACE VIEW timeline.slow_collective (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins timeline.collective.collective_id.
  collective_id,
  -- Iteration in which it was issued; NULL outside of all iterations.
  iteration,
  -- Joins timeline.communicator.communicator_id.
  communicator_id,
  -- Operation.
  op,
  -- Bytes.
  size_bytes,
  -- From the last arrival to the last end, ns.
  transfer_ns,
  -- First quartile of the transfers of the same kind, ns.
  reference_transfer_ns,
  -- How many there are of the kind: of messages, between the same two ranks.
  alike,
  -- Bus bandwidth reached, bytes/s; NULL when the size is unknown.
  bus_bandwidth_bytes_per_s
) AS
WITH meeting AS (
  SELECT
    run_id, collective_id,
    MIN(LEAST(source_rank, destination_rank)) AS low_rank,
    MAX(GREATEST(source_rank, destination_rank)) AS high_rank
  FROM timeline.message
  GROUP BY run_id, collective_id
),
together AS (
  SELECT a.run_id, UNNEST(LIST(a.collective_id)) AS collective_id
  FROM timeline.arrival AS a
  JOIN meeting USING (run_id, collective_id)
  GROUP BY a.run_id, a.rank, a.call_id
  HAVING COUNT(*) > 1
),
ordered AS (
  SELECT c.*, m.low_rank, m.high_rank,
    CUME_DIST() OVER (
      PARTITION BY run_id, c.communicator_id, c.op, c.size_bytes, m.low_rank, m.high_rank ORDER BY c.transfer_ns
    ) AS quantile
  FROM timeline.collective AS c
  LEFT JOIN meeting AS m USING (run_id, collective_id)
  ANTI JOIN together USING (run_id, collective_id)
  WHERE c.size_bytes IS NOT NULL
),
compared AS (
  SELECT *,
    MIN(transfer_ns) FILTER (
      quantile >= (SELECT value FROM meta.threshold WHERE name = 'timeline.USUAL_TRANSFER_QUANTILE')
    ) OVER kind AS reference_transfer_ns,
    COUNT(*) OVER kind AS alike
  FROM ordered
  WINDOW kind AS (PARTITION BY run_id, communicator_id, op, size_bytes, low_rank, high_rank)
),
resolution AS (
  SELECT run_id,
    (SELECT value FROM meta.threshold WHERE name = 'align.RESOLUTION_RESIDUALS')
      * COALESCE(MAX(residual_ns), 0) AS resolution_ns
  FROM align.clock
  GROUP BY ALL
)
SELECT
  c.run_id,
  c.collective_id,
  c.iteration,
  c.communicator_id,
  c.op,
  c.size_bytes,
  c.transfer_ns,
  c.reference_transfer_ns,
  c.alike,
  c.bus_bandwidth_bytes_per_s
FROM compared AS c
JOIN resolution AS r USING (run_id)
WHERE c.alike >= (SELECT value FROM meta.threshold WHERE name = 'timeline.LEAST_ALIKE')
  AND c.transfer_ns > c.reference_transfer_ns
    * (SELECT value FROM meta.threshold WHERE name = 'timeline.SLOW_TRANSFER_RATIO')
  AND c.transfer_ns - c.reference_transfer_ns > r.resolution_ns
ORDER BY c.run_id, c.transfer_ns - c.reference_transfer_ns DESC, c.collective_id
