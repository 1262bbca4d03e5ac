-- What tools measured while the job was recorded, on the common clock: one row a reading of one quantity.
--
-- Readings of other times are in raw.telemetry_sample alone; those of tools that print no times are all here.
-- Scope: run
CREATE OR REPLACE TABLE fabric.telemetry (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins meta.source.source_id.
  source_id,
  -- Joins raw.telemetry_series.series_id within the source.
  series_id,
  -- Host; NULL when unknown.
  host,
  -- Rank that computes on the device; NULL of a NIC, and where nothing joins it.
  rank,
  -- Number of the device by the tool; NULL of a NIC.
  device,
  -- Name of the NIC; NULL of a device.
  nic,
  -- Quantity with its unit, as in raw.telemetry_series.
  metric,
  -- Which reading of the device or NIC it belongs to, from 0.
  sample,
  -- When it was read, aligned clock without the tool's zone and lag, ns; NULL where that cannot be known.
  at_ns,
  -- What was read, in the unit of the metric.
  value
) AS
WITH recorded AS (
  SELECT run_id, MIN(start_ns) AS start_ns, MAX(start_ns + duration_ns) AS end_ns
  FROM timeline.iteration
  GROUP BY run_id
),
placed AS (
  SELECT
    t.run_id, t.source_id, t.series_id, t.host, t.rank, t.device, t.nic, t.metric, s.sample,
    s.raw_at_ns - (COALESCE(l.zone_ns, CASE WHEN r.time_basis = 'utc' THEN 0 END) + COALESCE(l.lag_ns, 0))
      - align.ahead_ns(s.raw_at_ns, p) AS at_ns,
    r.time_basis = 'none' AS is_untimed, s.value
  FROM fabric.telemetry_series AS t
  JOIN raw.telemetry_series AS r USING (source_id, series_id)
  JOIN raw.telemetry_sample AS s USING (source_id, series_id)
  LEFT JOIN fabric.telemetry_lag AS l ON l.run_id = t.run_id AND l.source_id = t.source_id
  ASOF LEFT JOIN align.clock_piece AS p
    ON p.run_id = t.run_id AND p.rank = t.clock_rank AND COALESCE(s.raw_at_ns, 0) >= p.raw_from_ns
)
SELECT p.run_id, source_id, series_id, host, rank, device, nic, metric, sample, at_ns, value
FROM placed AS p
LEFT JOIN recorded AS r ON r.run_id = p.run_id
WHERE p.is_untimed OR p.at_ns BETWEEN r.start_ns AND r.end_ns
