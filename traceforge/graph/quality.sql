-- What each execution trace's graph can be used for: one row a trace.
-- Scope: rank
CREATE OR REPLACE TABLE graph.quality (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins graph.trace.source_id.
  source_id,
  -- Joins graph.trace.part.
  part,
  -- Global rank; NULL when unknown.
  rank,
  -- As in graph.trace.
  format,
  -- Nodes of the graph.
  node_count,
  -- Of these, nodes that ran on a device.
  device_node_count,
  -- Share of device nodes that anything depends on, 0..1; NULL without device nodes.
  device_successor_share,
  -- Dependencies of host nodes on device nodes: without any, the host never waits for the device.
  device_to_host_count,
  -- Share of nodes with a start, 0..1; NULL without nodes.
  timed_share,
  -- Share of nodes with a duration, 0..1; NULL without nodes.
  duration_share,
  -- Dependencies and calls that the file states, between nodes that exist.
  recorded_edge_count,
  -- Those that were derived from a linked timeline.
  derived_edge_count,
  -- Stated dependencies of which one end is missing among the nodes.
  dangling_edge_count,
  -- timed (measured times: linked to a timeline, ET+, or written with starts), modelled (made by a generator, with
  -- durations that a model gave), or structure_only.
  label,
  -- Whether a counterfactual may be computed from it; never from structure_only.
  is_counterfactual,
  -- One sentence: which model a counterfactual would use, or why there is none.
  reason
) AS
WITH node AS (
  SELECT source_id, part, COUNT(*) AS node_count, COUNT(*) FILTER (WHERE on_device) AS device_node_count,
    COUNT(raw_start_ns) AS timed_count, COUNT(duration_ns) AS duration_count,
    BOOL_OR(origin = 'timeline' OR timeline_source_id IS NOT NULL) AS is_linked
  FROM graph.node
  GROUP BY ALL
),
-- One end after the other, as in graph.edge.
begun AS MATERIALIZED (
  SELECT e.source_id, e.part, e.from_node, e.to_node, e.origin, f.on_device
  FROM graph.edge AS e
  JOIN graph.node AS f ON f.source_id = e.source_id AND f.part = e.part AND f.node = e.from_node
),
edge AS (
  SELECT b.source_id, b.part, COUNT(*) FILTER (WHERE b.origin = 'recorded') AS recorded_edge_count,
    COUNT(*) FILTER (WHERE b.origin = 'derived') AS derived_edge_count,
    COUNT(DISTINCT b.from_node) FILTER (WHERE b.on_device) AS device_predecessor_count,
    COUNT(*) FILTER (WHERE b.on_device AND NOT n.on_device) AS device_to_host_count
  FROM begun AS b
  JOIN graph.node AS n ON n.source_id = b.source_id AND n.part = b.part AND n.node = b.to_node
  GROUP BY ALL
),
stated AS (
  SELECT source_id, part, COUNT(*) AS stated_count FROM raw.chakra_edge GROUP BY ALL
),
converted AS (
  SELECT source_id, part, BOOL_OR(rf_id IS NOT NULL OR name LIKE 'aten::%') AS has_operators
  FROM raw.chakra_node
  GROUP BY ALL
),
labelled AS (
  SELECT t.*, n.*, e.*, s.stated_count,
    CASE
      WHEN n.is_linked OR t.format = 'pytorch_et_plus' OR n.timed_count >= n.node_count * (
        SELECT value FROM meta.threshold WHERE name = 'graph.LEAST_TIMED_SHARE'
      ) THEN 'timed'
      WHEN t.format <> 'pytorch_et' AND f.schema_version IS NULL AND NOT c.has_operators AND n.duration_count > 0
        THEN 'modelled'
      ELSE 'structure_only'
    END AS label
  FROM graph.trace AS t
  JOIN raw.chakra_file AS f USING (source_id, part)
  JOIN node AS n USING (source_id, part)
  JOIN converted AS c USING (source_id, part)
  LEFT JOIN edge AS e USING (source_id, part)
  LEFT JOIN stated AS s USING (source_id, part)
)
SELECT
  run_id, source_id, part, rank, format, node_count, device_node_count,
  COALESCE(device_predecessor_count, 0) / NULLIF(device_node_count, 0),
  COALESCE(device_to_host_count, 0),
  timed_count / NULLIF(node_count, 0),
  duration_count / NULLIF(node_count, 0),
  COALESCE(recorded_edge_count, 0),
  COALESCE(derived_edge_count, 0),
  COALESCE(stated_count, 0) - COALESCE(recorded_edge_count, 0),
  label,
  label <> 'structure_only',
  CASE
    WHEN label = 'timed' AND is_linked
      THEN 'measured times of the linked timeline; host gaps are kept, launch, stream and sync order are derived'
    WHEN label = 'timed' THEN 'times written in the file; dependencies as recorded'
    WHEN label = 'modelled'
      THEN 'durations given by a generator, dependencies as recorded; communication takes the duration written, or none'
    WHEN duration_count > 0 THEN 'durations, but no starts: structure only, nothing is computed from it'
    ELSE 'no times: structure only, nothing is computed from it'
  END
FROM labelled
ORDER BY run_id, rank, source_id, part
