-- Couplings that could make pacing pay, as far as this run shows them: one row a (run, mechanism). Experimental: few
-- recorded jobs with known couplings exist to check the intervals against.
--
-- Intervals are of 95 %. A coupling is called there where its 99 % interval leaves 0 out, so that one run in a hundred
-- without any shows one. Without couplings no delay can shorten an iteration (see replay.outcome).
-- Scope: run
-- Reads: timeline.collective, timeline.arrival, timeline.iteration, timeline.window, timeline.segment, graph.arrival, graph.work, align.clock, align.clock_piece, align.rank, align.name_class
CREATE OR REPLACE TABLE replay.calibration (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- arrival_spread: transfers grow with the spread of arrivals. waiting_overlap, transfer_overlap: kernels slow down
  -- while a collective on the same device waits, or transfers. co_located_waiting: host work slows down while ranks of
  -- the same host wait. predictability: whether a rank that was early will be early again, without which it cannot
  -- know when to hold back.
  mechanism VARCHAR NOT NULL,
  -- arrival_spread: extra transfer over mean wait. Overlaps and co_located_waiting: extra time of work over its time
  -- alone (for each waiting rank). predictability: correlation of ranks' waits with those one iteration before. All
  -- dimensionless; NULL where it cannot be measured.
  coefficient DOUBLE,
  -- Lower end of its 95 % interval; NULL where it cannot be measured.
  low DOUBLE,
  -- Upper end of its 95 % interval; NULL where it cannot be measured. Of arrival_spread what the run does not rule out,
  -- also where it was measured in vain: at most 2.
  high DOUBLE,
  -- Collectives, kernels, host operations or iterations x ranks it was measured on.
  n BIGINT NOT NULL,
  -- identifiable: it is there, above 0 or below. absent: measured, may be 0, and less than 1 % of the time is at stake.
  -- not_identifiable: this run does not show it.
  verdict VARCHAR NOT NULL,
  -- Why.
  reason VARCHAR NOT NULL,
  -- How strongly what is used to measure it moves what it acts on; below 10 nothing is measured. NULL where not tried.
  f_statistic DOUBLE,
  -- Share of the iterations' time that the coupling, at the end of its interval that is further from 0, can cost or
  -- spare; NULL where it is not measured.
  gain_bound DOUBLE,
  -- What it was measured on, in words; empty where nothing was.
  scope VARCHAR NOT NULL
)
