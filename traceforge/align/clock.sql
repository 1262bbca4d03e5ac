-- One row a rank: how far its clock is off, and how sure that is.
-- Aligned time = raw time - offset_ns - (raw time - raw_anchor_ns) x drift_ppb / 1e9, rounded towards zero, where one
-- line is enough; align.clock_piece holds what is used, of several pieces where the clock wobbles.
-- Scope: run
-- Reads: raw.profile, align.rank, align.match, align.call
CREATE OR REPLACE TABLE align.clock (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Host name; NULL when unknown.
  host VARCHAR,
  -- Rank's clock minus the reference rank's clock when the rank's shows raw_anchor_ns, ns; NULL when unaligned.
  offset_ns BIGINT,
  -- How much faster the rank's clock runs than the reference's, parts per billion; 0 where no drift is certain.
  drift_ppb BIGINT,
  -- Reading of the rank's own clock to which offset_ns belongs, ns; NULL when unaligned.
  raw_anchor_ns BIGINT,
  -- How uncertain the offset is, ns (1.48 times the median absolute deviation of the anchors' ends; half the range of
  -- nine tenths of them where status is bounded; half_error_ns where that is more; squares add over ties); NULL when
  -- unaligned.
  residual_ns BIGINT,
  -- Largest difference between fits of either half of the anchors, ns; NULL where there are fewer than six.
  half_error_ns BIGINT,
  -- Collectives whose common end, or order, tied this clock.
  anchors BIGINT NOT NULL,
  -- reference; fitted (collectives end together on devices); shared_clock (host threads of one host read one clock);
  -- bounded (host collectives end only roughly together: a coarse offset, within what order allows); unaligned.
  status VARCHAR NOT NULL,
  -- 0 for the ranks on the common clock; ranks of another number share collectives with one another only.
  component INTEGER,
  -- Synchronising collectives that the rank, by these clocks, ends before the last rank has arrived; its wait is cut
  -- at its own end there.
  causality_repairs BIGINT,
  -- The largest of these contradictions, ns; 0 where there is none.
  largest_repair_ns BIGINT,
  -- The offset over time: for each stretch its start on the rank's own clock, the offset then, both ns, and the drift,
  -- parts per billion (see align.clock_piece).
  course STRUCT(raw_ns BIGINT, ahead_ns BIGINT, ppb BIGINT)[]
)
