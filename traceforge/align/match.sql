-- Which calls of different ranks are one collective. Calls without partners are absent and counted in meta.issue.
-- A call that carries several messages (a batch) meets several others, each in a collective of two ranks.
-- Scope: run
-- Reads: align.call, align.membership, align.communicator, align.step, align.message, align.unmatched_endpoint
CREATE OR REPLACE TABLE align.match (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Number of the collective within the run.
  collective_id BIGINT NOT NULL,
  -- Joins align.communicator.communicator_id within the run.
  communicator_id BIGINT NOT NULL,
  -- Number of the collective within the communicator, from 0 (or as the trace states it); of a send and its receive
  -- within the directed pair of ranks.
  sequence BIGINT NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Joins align.call.call_id within the rank.
  call_id BIGINT NOT NULL,
  -- How it was matched: sequence_number, order, order_of_kind (of one operation and size), order_in_iteration, alignment
  -- (side by side in time, as events were lost) or pair (order of sends and receives between two ranks).
  method VARCHAR NOT NULL,
  -- Of a meeting in messages: send, recv or both; NULL of a collective.
  direction VARCHAR,
  -- True where one rank sends to all others or gets from all, as in a broadcast: ranks may end it before others come.
  is_rooted BOOLEAN NOT NULL
)
