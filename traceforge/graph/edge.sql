-- One row a dependency or a call between two nodes of one trace's graph, stated by its file or derived.
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
SELECT run_id, source_id, part, from_node, to_node, kind, 'derived'
FROM graph.derived_edge
