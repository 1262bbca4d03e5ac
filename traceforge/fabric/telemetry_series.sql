-- Whose each series of telemetry is: one row a series of raw.telemetry_series. Devices without a rank are counted in meta.issue.
-- Scope: run
-- Reads: raw.telemetry_series, align.rank, raw.profile, raw.event, fabric.member
CREATE OR REPLACE TABLE fabric.telemetry_series (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.telemetry_series.series_id within the source.
  series_id INTEGER NOT NULL,
  -- Quantity with its unit, as in raw.telemetry_series.
  metric VARCHAR NOT NULL,
  -- Host that the file states, or the one host of the run that its path names; NULL where neither tells.
  host VARCHAR,
  -- Number of the device by the tool; NULL of a NIC.
  device INTEGER,
  -- Name of the NIC; NULL of a device.
  nic VARCHAR,
  -- Rank that computes on the device; NULL of a NIC, and where nothing joins it.
  rank INTEGER,
  -- How the rank is known: trace (the trace itself sampled the device that it used), uuid, pci (addresses in the trace or in
  -- NCCL's log), index (the device number of the only rank of the host that uses it); NULL where it is not.
  joined_by VARCHAR,
  -- Rank whose clock tells the host's time: its own, else the first of the host; NULL where the host is not known.
  clock_rank INTEGER
)
