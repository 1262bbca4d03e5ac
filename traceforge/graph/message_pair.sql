-- Whether every message that execution traces record is both sent and received: one row a (sender, receiver, process
-- group, tag) of which both ranks are recorded. Messages of one row pair in their order; no times are needed.
-- Scope: run
-- Reads: graph.communication, raw.chakra_communication
CREATE OR REPLACE TABLE graph.message_pair (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank that sends.
  source_rank BIGINT NOT NULL,
  -- Global rank that receives.
  destination_rank BIGINT NOT NULL,
  -- As in graph.communication; NULL where it is unknown.
  process_group VARCHAR,
  -- Tag of the messages; NULL where none is stated.
  tag BIGINT,
  -- Sends that the sender records.
  send_count BIGINT NOT NULL,
  -- Receives that the receiver records.
  receive_count BIGINT NOT NULL,
  -- agrees, size (a pair of different sizes), order (the same sizes in another order), unreceived (a send without its
  -- receive), unsent (a receive without its send), or shorter (the first or last calls of one side are not recorded,
  -- and nothing shows that its recording covers them).
  status VARCHAR NOT NULL,
  -- First pair that does not fit, from 0; NULL when all do.
  first_place BIGINT,
  -- Node of the send there, as its file numbers it; NULL without one.
  send_node_id BIGINT,
  -- Node of the receive there, as its file numbers it; NULL without one.
  receive_node_id BIGINT,
  -- Bytes sent there; NULL without a send, or where they are unknown.
  sent_bytes BIGINT,
  -- Bytes received there; NULL without a receive, or where they are unknown.
  received_bytes BIGINT
)
