-- How much of each collective its rank's compute hid: one row a (collective, rank) inside an iteration.
--
-- The parts add up to the time from the rank's arrival to its end. Collectives that are exposed at once each
-- count; timeline.phase counts every instant once.
-- Scope: rank
-- In parts by: align.rank_batch
-- Reads: align.rank, timeline.arrival, timeline.collective, timeline.segment
CREATE OR REPLACE TABLE timeline.exposure (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins timeline.collective.collective_id.
  collective_id BIGINT NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Until the last rank whose trace is here arrived, while this rank did not compute, ns.
  exposed_wait_ns BIGINT NOT NULL,
  -- After the last rank arrived, while this rank did not compute, ns.
  exposed_transfer_ns BIGINT NOT NULL,
  -- After the last known arrival, where members have no trace, while this rank did not compute: waiting or transfer, ns.
  exposed_unsplit_ns BIGINT NOT NULL,
  -- While this rank computed, ns.
  hidden_ns BIGINT NOT NULL
)
