-- Which receive belongs to which send: one row a matched message. Others are in align.unmatched_endpoint.
--
-- Two calls that exchange several messages (a batch that sends and receives) meet once: they share a meeting_id, and
-- stand in align.match as one collective of two ranks.
-- Scope: run
-- Reads: align.endpoint, align.call, align.membership, align.communicator, align.step, align.rank
CREATE OR REPLACE TABLE align.message (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Number of the message within the run.
  message_id BIGINT NOT NULL,
  -- Joins align.match.collective_id: the calls that meet.
  meeting_id BIGINT NOT NULL,
  -- Joins align.communicator.communicator_id within the run.
  communicator_id BIGINT NOT NULL,
  -- Number of the message among those from this rank to that one, from 0.
  sequence BIGINT NOT NULL,
  -- Global rank that sends.
  source_rank INTEGER NOT NULL,
  -- Its call; joins align.call.call_id within the rank.
  source_call_id BIGINT NOT NULL,
  -- Joins align.endpoint.endpoint_id within the rank.
  source_endpoint_id BIGINT NOT NULL,
  -- Global rank that receives.
  destination_rank INTEGER NOT NULL,
  -- Its call; joins align.call.call_id within the rank.
  destination_call_id BIGINT NOT NULL,
  -- Joins align.endpoint.endpoint_id within the rank.
  destination_endpoint_id BIGINT NOT NULL,
  -- Bytes, the larger of what the two say; NULL when unknown.
  size_bytes BIGINT,
  -- Tag; NULL when not recorded.
  tag BIGINT
)
