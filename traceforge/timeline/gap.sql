-- When a device had nothing to do, and why: one row a stretch of an iteration in which nothing runs on any stream.
--
-- Each gap has one cause; the gaps of a rank's iteration add up to its phases input, runtime and idle. Ranks without
-- a device have no gaps.
-- Scope: rank
-- In parts by: align.rank_batch
-- Reads: timeline.segment, align.rank, align.clock_piece, align.name_class, raw.event
CREATE OR REPLACE TABLE timeline.gap (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Iteration number.
  iteration INTEGER NOT NULL,
  -- Start, aligned clock, ns.
  start_ns BIGINT NOT NULL,
  -- Duration, ns, > 0.
  duration_ns BIGINT NOT NULL,
  -- What the training thread, or the one of the backward pass, did for most of it: {held_gap_causes} or copy_wait (in
  -- a copy call). Otherwise what ended the gap: late_launch (work launched after the gap began), device_queue (work
  -- launched before it, held up by streams, events or the device) or unknown.
  cause VARCHAR NOT NULL,
  -- Of its duration, what the thread spent so; all of it where what ends the gap decides, ns.
  cause_ns BIGINT NOT NULL,
  -- How long before the gap began the work that ends it was launched, ns; negative where later, NULL when unknown.
  launch_lead_ns BIGINT,
  -- Call to the device's runtime or driver, on any thread, that fills most of it, such as cudaStreamSynchronize or
  -- cudaMalloc; NULL where none was recorded in it.
  call VARCHAR,
  -- How long its calls of that name fill the gap, at most its duration, ns; NULL where there is none.
  call_ns BIGINT
)
