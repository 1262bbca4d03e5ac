-- How each device spent its recorded time, over the whole file and all streams: one row a rank.
--
-- The definitions are those of Holistic Trace Analysis' temporal breakdown and communication overlap, over the file
-- regardless of steps. See timeline.phase for iterations.
-- Scope: rank
-- In parts by: align.rank_batch
-- Reads: align.rank, align.name_class, raw.event
CREATE OR REPLACE TABLE timeline.device_time (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Kernels, copies and memory sets.
  events BIGINT NOT NULL,
  -- From the first start to the last end, ns.
  span_duration_ns BIGINT NOT NULL,
  -- While anything runs, ns.
  busy_duration_ns BIGINT NOT NULL,
  -- While nothing runs, ns; busy and idle add up to the span.
  idle_duration_ns BIGINT NOT NULL,
  -- While a kernel other than communication runs, ns.
  compute_duration_ns BIGINT NOT NULL,
  -- While only communication, copies or memory sets run, ns; with compute it adds up to busy.
  non_compute_duration_ns BIGINT NOT NULL,
  -- While communication runs, ns.
  communication_duration_ns BIGINT NOT NULL,
  -- While communication and compute run, ns.
  overlap_duration_ns BIGINT NOT NULL
)
