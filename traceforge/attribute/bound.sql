-- What bounds a rank, and the job, in words: one row a rank and one for the job, from attribute.bottleneck.
-- Scope: run
-- Reads: attribute.bottleneck, operation.kernel, operation.device, operation.judged_iteration, timeline.phase, timeline.segment, timeline.gap, raw.event, align.rank, align.step, align.name_class, align.clock_piece
CREATE OR REPLACE TABLE attribute.bound (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank; NULL for the job.
  rank INTEGER,
  -- The part of attribute.bottleneck that is named.
  bound VARCHAR NOT NULL,
  -- Its share of the mean iteration, 0..1.
  share DOUBLE NOT NULL,
  -- Share of the mean iteration in which anything runs on the device, 0..1; NULL where there is no device.
  busy_share DOUBLE,
  -- Arithmetic of modelled kernels over the device's peak, 0..1; NULL where no arithmetic or no peak is known.
  peak_share DOUBLE,
  -- Share of the kernels' time whose arithmetic is known, 0..1; with little of it peak_share is a lower bound. NULL
  -- where there are no kernels.
  modelled_share DOUBLE,
  -- What bounds it, in one sentence or two.
  sentence VARCHAR NOT NULL,
  -- What an engineer does next.
  next_step VARCHAR NOT NULL
)
