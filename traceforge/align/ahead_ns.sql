-- How far a rank's clock is ahead of the common one when it shows a time, ns: aligned time = raw_ns - ahead_ns.
--
-- The offset at the anchor plus the drift since, rounded towards zero; NULL where there is no row of align.clock_piece.
CREATE OR REPLACE MACRO align.ahead_ns(
  -- Reading of the rank's own clock, ns.
  raw_ns,
  -- Row of align.clock_piece of that rank with the largest raw_from_ns that is no later than raw_ns.
  piece
) AS piece.offset_ns + (raw_ns - piece.raw_anchor_ns) * piece.drift_ppb // 1000000000
