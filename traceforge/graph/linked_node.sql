-- Recorded operations and the timeline events that they are: one row a pair of an accepted link (graph.link).
-- Scope: rank
-- Reads: graph.link, raw.chakra_node, raw.event, align.name_class
CREATE OR REPLACE TABLE graph.linked_node (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins graph.trace.source_id.
  source_id INTEGER NOT NULL,
  -- Joins graph.trace.part.
  part INTEGER NOT NULL,
  -- Joins raw.chakra_node.position within the source.
  position BIGINT NOT NULL,
  -- Joins raw.event.source_id.
  timeline_source_id INTEGER NOT NULL,
  -- Joins raw.event.event_id within the timeline.
  event_id BIGINT NOT NULL,
  -- Whether both have one name.
  is_same_name BOOLEAN NOT NULL
)
