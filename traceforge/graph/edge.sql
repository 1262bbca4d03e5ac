-- One row a dependency or a call between two nodes of one trace's graph, stated by its file or derived.
--
-- A blocking copy launches device work and waits for it. As an edge back to it would close a circle, what follows it on
-- its thread depends on that work here; graph.derived_edge has the edge to its end. So derived edges and those of
-- PyTorch's files form no circles; those that other files state may.
-- Scope: rank
CREATE OR REPLACE VIEW graph.edge (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins graph.trace.source_id.
  source_id,
  -- Joins graph.trace.part.
  part,
  -- What comes first; joins graph.node.node.
  from_node,
  -- What depends on it, or is called by it; joins graph.node.node.
  to_node,
  -- Of a recorded edge as in raw.chakra_edge: data, control, parent, inter_thread, sync. Of a derived one as in
  -- graph.derived_edge: call, launch, thread, handover, stream, order, sync.
  kind,
  -- recorded (the file states it) or derived (it follows from a linked timeline).
  origin
) AS
WITH known AS (
  SELECT source_id, part, node_id, MIN(position) AS position
  FROM raw.chakra_node
  WHERE node_id IS NOT NULL
  GROUP BY ALL
),
-- One end after the other: joined at once, a planner without statistics may pair all nodes of a trace with one another.
begun AS MATERIALIZED (
  SELECT e.source_id, e.part, f.position AS from_node, e.to_node_id, e.kind
  FROM raw.chakra_edge AS e
  JOIN known AS f ON f.source_id = e.source_id AND f.part = e.part AND f.node_id = e.from_node_id
),
-- Calls that wait for what they launched, and the next call of their thread.
own_wait AS MATERIALIZED (
  SELECT s.source_id, s.part, s.from_node, s.to_node, s.kind, n.to_node AS next_node
  FROM graph.derived_edge AS s
  JOIN graph.derived_edge AS l
    ON l.source_id = s.source_id AND l.part = s.part AND l.from_node = s.to_node AND l.to_node = s.from_node
  LEFT JOIN graph.derived_edge AS n
    ON n.source_id = s.source_id AND n.part = s.part AND n.from_node = s.to_node AND n.kind = 'thread'
  WHERE s.kind = 'sync' AND l.kind = 'launch'
)
SELECT
  t.run_id,
  b.source_id,
  b.part,
  b.from_node,
  n.position AS to_node,
  b.kind,
  'recorded' AS origin
FROM begun AS b
JOIN graph.trace AS t USING (source_id, part)
JOIN known AS n ON n.source_id = b.source_id AND n.part = b.part AND n.node_id = b.to_node_id
UNION ALL
SELECT d.run_id, d.source_id, d.part, d.from_node, COALESCE(w.next_node, d.to_node), d.kind, 'derived'
FROM graph.derived_edge AS d
LEFT JOIN own_wait AS w USING (source_id, part, from_node, to_node, kind)
WHERE w.from_node IS NULL OR w.next_node IS NOT NULL
