-- One row a rank: how far its clock is off. 
-- Aligned time = raw time - offset_ns - (raw time - raw_anchor_ns) x drift_ppb / 1e9, rounded down.
-- Reads: align.rank, align.match, align.call
CREATE OR REPLACE TABLE align.clock (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Host name; NULL when unknown.
  host VARCHAR,
  -- Rank's clock minus the reference rank's clock when the rank's shows raw_anchor_ns, ns; NULL when unaligned.
  offset_ns BIGINT,
  -- By how much the rank's clock runs faster than the reference's, parts per billion; 0 where no drift can be told.
  drift_ppb BIGINT,
  -- Reading of the rank's own clock to which offset_ns belongs, ns; NULL when unaligned.
  raw_anchor_ns BIGINT,
  -- How uncertain the offset is, ns (1.48 times the median absolute deviation of the anchors' ends; half the range of
  -- nine tenths of them where status is bounded); NULL when unaligned.
  residual_ns BIGINT,
  -- Collectives whose common end, or order, tied this clock.
  anchors BIGINT NOT NULL,
  -- reference; fitted (collectives end together on devices); shared_clock (host threads of one host read one clock);
  -- bounded (host collectives end only roughly together: a coarse offset, within what order allows); unaligned.
  status VARCHAR NOT NULL
)
