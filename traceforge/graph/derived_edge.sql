-- Dependencies that no file states and that follow from a linked timeline: one row a dependency. An order that the
-- measured times contradict is left out.
-- Scope: rank
-- Reads: graph.node, graph.linked_node, raw.event
CREATE OR REPLACE TABLE graph.derived_edge (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins graph.trace.source_id.
  source_id INTEGER NOT NULL,
  -- Joins graph.trace.part.
  part INTEGER NOT NULL,
  -- What comes first; joins graph.node.node.
  from_node BIGINT NOT NULL,
  -- What depends on it; joins graph.node.node.
  to_node BIGINT NOT NULL,
  -- call (recorded operation to the launch or synchronisation it makes), launch (to the device work launched),
  -- thread (consecutive launches and synchronisations of a host thread), handover (the last of them on another thread,
  -- where a thread had paused), stream (consecutive work of a device stream), order (work of another stream that a
  -- stream was told to wait for), sync (device work to the host call that waits for its end).
  kind VARCHAR NOT NULL
)
