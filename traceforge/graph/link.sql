-- How each execution trace was tied to the timeline of its rank: one row a (trace, method tried), best method first.
--
-- Methods are tried in order until one is accepted: rf_id (the timeline repeats the handles of the operations),
-- external_id (it holds them plus a constant), sequence (names in order, thread by thread). A method is accepted if at
-- least nine in ten of the pairs have equal names and nine in ten of the smaller side are paired.
-- Scope: run
-- Reads: graph.trace, raw.chakra_node, raw.event, align.name_class
CREATE OR REPLACE TABLE graph.link (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins graph.trace.source_id.
  source_id INTEGER NOT NULL,
  -- Joins graph.trace.part.
  part INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Timeline; joins meta.source.source_id.
  timeline_source_id INTEGER NOT NULL,
  -- rf_id, external_id or sequence.
  method VARCHAR NOT NULL,
  -- Operations of the trace that could be paired: those of host threads with a handle.
  operation_count BIGINT NOT NULL,
  -- Host operations and annotations of the timeline.
  event_count BIGINT NOT NULL,
  -- Pairs found.
  matched_count BIGINT NOT NULL,
  -- Pairs in the smaller one of operation_count and event_count, 0..1.
  matched_share DOUBLE NOT NULL,
  -- Pairs whose names are equal, 0..1; 0 without pairs.
  name_agreement DOUBLE NOT NULL,
  -- Constant between handle and external id; NULL for other methods.
  id_distance BIGINT,
  -- How often the trace's sequence of names occurs in the timeline; the first place is taken. 1 for other methods.
  occurrences BIGINT NOT NULL,
  -- Whether the pairs are used (graph.linked_node).
  is_accepted BOOLEAN NOT NULL
)
