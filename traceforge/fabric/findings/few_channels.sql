-- A setting limits the channels of collectives, or a communicator has far fewer than others of its size.
-- Mode: runtime_control_plane
-- Severity: notice
-- Summary: Communicator {subject} of {rank_count} ranks has {channels:count channel} for collectives{compared}.
-- Next step: See NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS and NCCL_NTHREADS, the width of PCI links (`lspci -vv`), and links
--   that are down.
WITH limit_set AS (
  SELECT p.run_id, MIN(e.name || '=' || e.value) AS setting
  FROM raw.nccl_environment AS e
  JOIN raw.nccl_record AS r USING (source_id, record_id)
  JOIN fabric.process AS p ON p.source_id = e.source_id AND p.process_id = r.process_id
  WHERE e.name IN ('NCCL_MAX_NCHANNELS', 'NCCL_MAX_NRINGS', 'NCCL_MAX_CTAS')
  GROUP BY p.run_id
),
compared AS (
  SELECT *, MAX(channel_count) OVER (PARTITION BY run_id, rank_count, node_count) AS most_channels
  FROM fabric.communicator
  WHERE channel_count IS NOT NULL AND rank_count > 1
),
odd AS (
  SELECT c.*, s.setting
  FROM compared AS c
  LEFT JOIN limit_set AS s USING (run_id)
  WHERE s.setting IS NOT NULL
    OR c.channel_count < (SELECT value FROM meta.threshold WHERE name = 'fabric.FEW_CHANNELS_SHARE') * c.most_channels
)
SELECT
  run_id, 'communicator' AS subject_kind,
  ARG_MIN(communicator_id, (channel_count, communicator_id)) AS subject,
  ARG_MIN(rank_count, (channel_count, communicator_id)) AS rank_count,
  MIN(channel_count) AS channels,
  CASE
    WHEN MIN(setting) IS NOT NULL THEN '; ' || MIN(setting) || ' is set'
    ELSE ', where others of its size have ' || ARG_MIN(most_channels, (channel_count, communicator_id))
  END AS compared,
  ARG_MIN((source_id, line), (channel_count, communicator_id)) AS first,
  COUNT(*) AS citation_count
FROM odd
GROUP BY run_id
