-- What tools measured of devices and NICs beside the job: nvidia-smi, dcgmi, Prometheus.

-- One row a series: one quantity of one device or NIC in one file.
CREATE TABLE raw.telemetry_series (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Small integer within the file.
  series_id INTEGER NOT NULL,
  -- Quantity with its unit: sm_clock_mhz, sm_clock_max_mhz, memory_clock_mhz, power_w, power_limit_w, temperature_c,
  -- memory_temperature_c, busy_share (of time with a kernel), sm_active_share, throttle_reasons (NVML's bits),
  -- ecc_corrected and ecc_uncorrected (errors since the driver was loaded), nic_received_bytes, nic_sent_bytes and
  -- nic_errors (counters that only grow).
  metric VARCHAR NOT NULL,
  -- Name of the quantity as the tool writes it.
  written_name VARCHAR NOT NULL,
  -- Host that the file states; NULL where it states none.
  host VARCHAR,
  -- Number of the device by the tool, which counts in the order of PCI addresses; NULL of a NIC.
  device INTEGER,
  -- UUID of the device; NULL where not recorded.
  uuid VARCHAR,
  -- PCI address of the device as written; NULL where not recorded.
  pci_address VARCHAR,
  -- Model of the device; NULL where not recorded.
  device_name VARCHAR,
  -- Name of the NIC, such as mlx5_0; NULL of a device.
  nic VARCHAR,
  -- What raw_at_ns counts: utc, local (the host's local time, whose zone the file does not state) or none.
  time_basis VARCHAR NOT NULL
);

-- One row a measurement.
CREATE TABLE raw.telemetry_sample (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.telemetry_series.series_id within the source.
  series_id INTEGER NOT NULL,
  -- Which reading of the device or NIC it belongs to, from 0: quantities read at once share it.
  sample BIGINT NOT NULL,
  -- When it was read, ns since the epoch by the tool's clock (see telemetry_series.time_basis); NULL without times.
  raw_at_ns BIGINT,
  -- What was read, in the unit of the metric.
  value DOUBLE NOT NULL
);
