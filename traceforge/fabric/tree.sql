-- Trees of channels: one row per (communicator, channel, rank).
-- Scope: run
CREATE OR REPLACE TABLE fabric.tree (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins fabric.communicator.communicator_id within the run.
  communicator_id,
  -- Channel number.
  channel,
  -- Rank in the communicator.
  rank,
  -- Rank above; NULL at the root.
  parent_rank,
  -- Ranks below.
  child_ranks,
  -- Joins meta.source.source_id: the log that states it.
  source_id,
  -- Line there, from 1.
  line
) AS
SELECT
  m.run_id, m.communicator_id, t.channel, t.rank,
  ARG_MIN(t.parent_rank, t.record_id), ARG_MIN(t.child_ranks, t.record_id), MIN(t.source_id),
  ARG_MIN(r.line, t.record_id)
FROM raw.nccl_tree AS t
JOIN fabric.member AS m USING (source_id, handle_id)
JOIN raw.nccl_record AS r ON r.source_id = t.source_id AND r.record_id = t.record_id
GROUP BY m.run_id, m.communicator_id, t.channel, t.rank
ORDER BY m.run_id, m.communicator_id, t.channel, t.rank
