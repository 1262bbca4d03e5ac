-- NCCL's communicators, joined across logs: one row per communicator that some log names.
-- Scope: run
CREATE OR REPLACE TABLE fabric.communicator (
  -- Joins meta.run.run_id.
  run_id,
  -- Small integer within the run, the largest communicators first.
  communicator_id,
  -- commId (commHash) as printed; NULL before NCCL 2.18 and for splits of 2.23.
  comm_hash,
  -- Number of ranks.
  rank_count,
  -- Number of ranks that appear in some log.
  member_count,
  -- Whether all ranks appear in some log.
  is_complete,
  -- Nodes it spans, as stated or else counted from the hosts of its members; NULL where some member is missing.
  node_count,
  -- Ranks in the job in the order of ranks in the communicator; NULL where one of them is unknown.
  ranks,
  -- How it is known, as in fabric.member.identity; the weakest of its members.
  identity,
  -- API function that created it; NULL where not printed.
  api,
  -- Channels for collectives, the fewest among its ranks; NULL where not printed.
  channel_count,
  -- Channels for NVLink SHARP, the fewest among its ranks.
  nvls_channel_count,
  -- Channels for send and receive, the fewest among its ranks.
  p2p_channel_count,
  -- Longest init of its ranks, ns (NCCL 2.22 and later, or between stamped lines); NULL where not printed.
  init_ns,
  -- Joins meta.source.source_id: the log that first mentions it.
  source_id,
  -- Line there, from 1.
  line
) AS
WITH timed AS (
  SELECT source_id, handle_id, MAX(duration_ns) AS init_ns
  FROM raw.nccl_timing
  WHERE scope = 'init' AND phase = 'total'
  GROUP BY source_id, handle_id
),
gathered AS (
  SELECT
    m.run_id, m.communicator_id,
    MIN(c.comm_hash) AS comm_hash,
    MAX(c.rank_count) AS rank_count,
    COUNT(DISTINCT m.rank) AS member_count,
    COUNT(DISTINCT m.global_rank) AS known_count,
    MAX(c.node_count) AS node_count,
    COUNT(DISTINCT m.host) AS host_count,
    LIST(m.global_rank ORDER BY m.rank) AS ranks,
    ARG_MIN(m.identity, LIST_POSITION(['alone', 'inferred', 'split', 'hash'], m.identity)) AS identity,
    MIN(c.api) AS api,
    MIN(c.channel_count) AS channel_count,
    MIN(c.nvls_channel_count) AS nvls_channel_count,
    MIN(c.p2p_channel_count) AS p2p_channel_count,
    MAX(t.init_ns) AS init_ns,
    MIN((m.source_id, m.line)) AS first
  FROM fabric.member AS m
  JOIN raw.nccl_communicator AS c USING (source_id, handle_id)
  LEFT JOIN timed AS t USING (source_id, handle_id)
  WHERE m.identity <> 'implied'
  GROUP BY m.run_id, m.communicator_id
)
SELECT
  run_id, communicator_id, comm_hash, rank_count, member_count, member_count = rank_count,
  COALESCE(node_count, CASE WHEN member_count = rank_count THEN host_count END),
  CASE WHEN known_count = rank_count THEN ranks END,
  identity, api, channel_count, nvls_channel_count, p2p_channel_count, init_ns, first[1], first[2]
FROM gathered
ORDER BY run_id, communicator_id
