-- What the dependency graph gives back when it is replayed: one row a (run, scenario, rank), and one for
-- all ranks together. It shows whether the graph explains the measured time, and whether it reacts to a change.
--
-- Linked traces of all ranks are replayed together: host calls in order with the host's own work between them, device
-- work behind its launch, its stream and the streams it waits for, collectives once all ranks have arrived. Traces of a
-- generator are replayed each on its own, by the durations and dependencies written. Traces without times never are.
-- Scope: run
-- Reads: graph.quality, graph.node, graph.derived_edge, graph.edge, align.clock_piece, timeline.arrival, align.call, align.step
CREATE OR REPLACE TABLE graph.baseline (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- as_recorded; instant_transfer (collectives take no time once all ranks have arrived); no_communication (they take
  -- no time and nobody waits for others).
  scenario VARCHAR NOT NULL,
  -- Global rank; NULL for all together.
  rank INTEGER,
  -- timed or modelled, as in graph.quality.
  label VARCHAR NOT NULL,
  -- Ranks (for generated traces: traces) replayed.
  rank_count BIGINT NOT NULL,
  -- Collectives that tie ranks together in the replay.
  collective_count BIGINT NOT NULL,
  -- From the first start to the last end as measured, ns; NULL where nothing was measured.
  measured_ns BIGINT,
  -- The same, replayed, ns.
  replayed_ns BIGINT NOT NULL,
  -- replayed_ns / measured_ns - 1; NULL where nothing was measured.
  difference DOUBLE,
  -- Dependencies left out because measured times (or, of generated traces, a cycle) contradict them.
  contradicted_count BIGINT NOT NULL
)
