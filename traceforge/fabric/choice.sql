-- What NCCL chose: one row per (communicator, operation, size, algorithm, protocol, channels).
-- Rank 0 prints a choice after its call and without the communicator, which is therefore that of the last call of the
-- same process, size and operation before it.
-- Scope: run
CREATE OR REPLACE TABLE fabric.choice (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins fabric.communicator.communicator_id within the run; NULL where no call before the choice fits.
  communicator_id,
  -- Operation; NULL where neither choice nor call states it.
  op,
  -- Bytes as the choice prints them (until 2.23 the algorithm's total).
  size_bytes,
  -- tree, ring, nvls, ... as in raw.nccl_tuning.
  algorithm,
  -- ll, ll128 or simple; NULL where it has none.
  protocol,
  -- First channel; NULL until 2.23.
  channel_low,
  -- Last channel; NULL until 2.23.
  channel_high,
  -- How often it was chosen.
  choices,
  -- Time NCCL's model predicts, ns; no measurement, and NULL since 2.24.
  predicted_ns,
  -- Joins meta.source.source_id: the log that first states it.
  source_id,
  -- Line there, from 1.
  line
) AS
WITH chosen AS (
  SELECT p.run_id, p.process, t.source_id, t.record_id, r.line, t.size_bytes, t.algorithm, t.protocol, t.channel_low,
    t.channel_high, t.predicted_ns, LOWER(REGEXP_REPLACE(t.op, '([a-z])([A-Z])', '\1_\2', 'g')) AS op
  FROM raw.nccl_tuning AS t
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = t.source_id AND p.process_id = r.process_id
),
called AS (
  SELECT o.run_id, o.communicator_id, o.op, o.source_id, o.record_id, p.process,
    -- Until 2.23 a choice prints the bytes of all ranks together.
    UNNEST(LIST_DISTINCT([o.size_bytes, o.size_bytes * k.rank_count])) AS size_bytes
  FROM fabric.operation AS o
  JOIN fabric.communicator AS k USING (run_id, communicator_id)
  JOIN raw.nccl_record AS r ON r.source_id = o.source_id AND r.record_id = o.record_id
  JOIN fabric.process AS p ON p.source_id = o.source_id AND p.process_id = r.process_id
  WHERE EXISTS (SELECT 1 FROM chosen AS c WHERE c.source_id = o.source_id)
),
with_op AS (
  SELECT c.*, o.communicator_id, o.op AS called_op
  FROM chosen AS c
  ASOF LEFT JOIN called AS o
    ON o.source_id = c.source_id AND o.process = c.process AND o.size_bytes = c.size_bytes AND o.op = c.op
    AND o.record_id <= c.record_id
  WHERE c.op IS NOT NULL
),
without_op AS (
  SELECT c.*, o.communicator_id, o.op AS called_op
  FROM chosen AS c
  ASOF LEFT JOIN called AS o
    ON o.source_id = c.source_id AND o.process = c.process AND o.size_bytes = c.size_bytes
    AND o.record_id <= c.record_id
  WHERE c.op IS NULL
)
SELECT
  run_id, communicator_id, COALESCE(op, called_op) AS op, size_bytes, algorithm, protocol, channel_low, channel_high,
  COUNT(*), CAST(MEDIAN(predicted_ns) AS BIGINT), ARG_MIN(source_id, (source_id, record_id)),
  ARG_MIN(line, (source_id, record_id))
FROM (FROM with_op UNION ALL BY NAME FROM without_op)
GROUP BY run_id, communicator_id, COALESCE(op, called_op), size_bytes, algorithm, protocol, channel_low, channel_high
ORDER BY ALL
