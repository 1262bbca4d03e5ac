-- How far the clock of each file of telemetry is from that of the traces: one row a file with devices of ranks.
-- Scope: run
-- Reads: fabric.telemetry_series, raw.telemetry_sample, raw.telemetry_series, timeline.segment, align.clock_piece
CREATE OR REPLACE TABLE fabric.telemetry_lag (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- measured (the edges of the load fit at one lag only), assumed (the load does not tell: the host's clock is taken for
  -- the tool's), elsewhere (taken at another time than the trace), unclear (local times whose zone is open) or no_times.
  status VARCHAR NOT NULL,
  -- Zone of the local times: what is subtracted from them, ns; 0 of times in UTC; NULL where open or without times.
  zone_ns BIGINT,
  -- How much later the tool dates the load than the trace, ns; NULL where not measured.
  lag_ns BIGINT,
  -- Steps in which lags were tried, ns: no lag is known more exactly.
  step_ns BIGINT,
  -- Median time between two readings of one device, ns; NULL without times.
  interval_ns BIGINT,
  -- Correlation of load and readings at the best lag; NULL where none was tried.
  correlation DOUBLE,
  -- The best correlation at any lag that is another one, more than two intervals away.
  rival_correlation DOUBLE,
  -- Readings of one device that lie within the trace.
  samples BIGINT NOT NULL,
  -- Zones, in quarters of an hour, at which the file overlaps the trace; 1 of times in UTC that do, 0 where none does.
  zones BIGINT NOT NULL
)
