-- Communication that execution traces record, one trace a rank: one row a call, waits left out. Needs no times.
-- Traces that do not fit the timeline of their rank (graph.link) are left out: they may be of another job.
-- Scope: run
-- Reads: graph.trace, graph.link, raw.chakra_communication, raw.chakra_node, raw.chakra_process_group
CREATE OR REPLACE TABLE graph.communication (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Joins graph.trace.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.chakra_communication.position within the source.
  position BIGINT NOT NULL,
  -- Id of the node as its file states it.
  node_id BIGINT,
  -- Process group as ranks agree on it: its name, else its order of first use and size; NULL where it is unknown.
  process_group VARCHAR,
  -- Global ranks of the members; NULL where unknown.
  members BIGINT[],
  -- Number of the call within the process group on this rank, from 0.
  ordinal BIGINT NOT NULL,
  -- Sequence number stated by the trace; NULL when not stated.
  sequence BIGINT,
  -- Operation, such as all_reduce, send or recv; NULL when unknown.
  op VARCHAR,
  -- Element type in lower case, without namespaces; NULL when unknown.
  dtype VARCHAR,
  -- Bytes sent; NULL when unknown.
  in_bytes BIGINT,
  -- Bytes received; NULL when unknown.
  out_bytes BIGINT,
  -- Elements of the first dimension sent to each member; NULL where all get the same.
  in_split_sizes BIGINT[],
  -- Elements of the first dimension received from each member; NULL where all send the same.
  out_split_sizes BIGINT[],
  -- Rank that a message comes from; NULL for collectives.
  source_rank BIGINT,
  -- Rank that a message goes to; NULL for collectives.
  destination_rank BIGINT
)
