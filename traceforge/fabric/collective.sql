-- How NCCL carried each collective of the timeline: one row per collective whose communicator was matched in the logs, or
-- whose trace says it itself.
-- Scope: run
CREATE OR REPLACE TABLE fabric.collective (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins timeline.collective.collective_id within the run.
  collective_id,
  -- Joins fabric.communicator.communicator_id within the run; NULL where no log shows it.
  communicator_id,
  -- Algorithm of this very call where the trace states it, else that chosen for this operation and size: ring, tree,
  -- nvls, ...; NULL where neither trace nor log states one.
  algorithm,
  -- Protocol likewise: ll, ll128 or simple.
  protocol,
  -- Channels: those of the call, or the choice, else all that the communicator has; NULL where not stated.
  channel_count,
  -- Share 0..1 of the choices for this operation and size that were these; NULL without choices.
  choice_share,
  -- Slowest class of path between its ranks, as in fabric.edge; NULL where no connection is logged.
  path_class,
  -- NICs its connections use, by name where known; empty within a node.
  nics,
  -- Confidence in the match of the communicator, as in fabric.communicator_match.score; NULL without one.
  score
) AS
WITH slowest AS (
  SELECT UNNEST(['p2p', 'shared_memory', 'collnet', 'network_gdr', 'network_host', 'socket']) AS path_class,
    UNNEST(RANGE(6)) AS place
),
used AS (
  SELECT e.run_id, e.communicator_id, ARG_MAX(e.path_class, s.place) AS path_class
  FROM fabric.edge AS e
  JOIN slowest AS s USING (path_class)
  WHERE e.connection_index = 0
  GROUP BY e.run_id, e.communicator_id
),
ends AS (
  SELECT run_id, communicator_id, source_host AS host, network, send_nic AS nic FROM fabric.edge
  UNION
  SELECT run_id, communicator_id, target_host, network, receive_nic FROM fabric.edge
),
carried AS (
  SELECT e.run_id, e.communicator_id,
    LIST_SORT(LIST(DISTINCT COALESCE(l.name, e.network || '/' || e.nic))) AS nics
  FROM ends AS e
  LEFT JOIN fabric.nic_load AS l
    ON l.run_id = e.run_id AND l.host = e.host AND l.network = e.network AND l.nic = e.nic
  WHERE e.nic IS NOT NULL
  GROUP BY e.run_id, e.communicator_id
),
-- A choice prints what one rank sends or receives (until 2.23, all ranks together), a timeline all ranks together.
sized AS (
  SELECT c.*, UNNEST(LIST_DISTINCT([c.size_bytes, CASE WHEN c.op IN ('all_gather', 'reduce_scatter')
    THEN c.size_bytes * k.rank_count ELSE c.size_bytes END])) AS whole_bytes
  FROM fabric.choice AS c
  JOIN fabric.communicator AS k ON k.run_id = c.run_id AND k.communicator_id = c.communicator_id
),
chosen AS (
  SELECT run_id, communicator_id, op, whole_bytes,
    ARG_MAX(algorithm, choices) AS algorithm,
    ARG_MAX(protocol, choices) AS protocol,
    ARG_MAX(channel_high - channel_low + 1, choices) AS channel_count,
    MAX(choices) / SUM(choices) AS choice_share
  FROM sized
  GROUP BY run_id, communicator_id, op, whole_bytes
),
stated AS (
  SELECT m.run_id, m.collective_id, MODE(x.algorithm) AS algorithm, MODE(x.protocol) AS protocol,
    MODE(x.channel_count) AS channel_count
  FROM timeline.arrival AS m
  JOIN align.call AS a USING (run_id, rank, call_id)
  JOIN raw.collective_choice AS x ON x.source_id = a.source_id AND x.event_id = a.event_id
  GROUP BY ALL
)
SELECT
  t.run_id, t.collective_id, m.communicator_id, COALESCE(s.algorithm, c.algorithm), COALESCE(s.protocol, c.protocol),
  COALESCE(s.channel_count, c.channel_count, k.channel_count), c.choice_share, u.path_class, COALESCE(n.nics, []), m.score
FROM timeline.collective AS t
LEFT JOIN stated AS s ON s.run_id = t.run_id AND s.collective_id = t.collective_id
LEFT JOIN fabric.communicator_match AS m
  ON m.run_id = t.run_id AND m.timeline_communicator_id = t.communicator_id
LEFT JOIN fabric.communicator AS k ON k.run_id = m.run_id AND k.communicator_id = m.communicator_id
LEFT JOIN used AS u ON u.run_id = m.run_id AND u.communicator_id = m.communicator_id
LEFT JOIN carried AS n ON n.run_id = m.run_id AND n.communicator_id = m.communicator_id
LEFT JOIN chosen AS c
  ON c.run_id = m.run_id AND c.communicator_id = m.communicator_id AND c.op = t.op AND c.whole_bytes = t.size_bytes
WHERE m.communicator_id IS NOT NULL OR s.collective_id IS NOT NULL
ORDER BY t.run_id, t.collective_id
