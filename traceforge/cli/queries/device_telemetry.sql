-- At which clock, power and temperature did each rank's device run, and why was it held back (NVML's bits)?
WITH judged AS (
  SELECT run_id, MIN(start_ns) AS start_ns, MAX(start_ns + duration_ns) AS end_ns
  FROM timeline.iteration
  WHERE NOT is_partial
  GROUP BY run_id
),
reading AS (
  SELECT run_id, source_id, rank, at_ns, COALESCE(at_ns, sample) AS place, ANY_VALUE(host) AS host,
    ANY_VALUE(device) AS device,
    MAX(value) FILTER (WHERE metric = 'sm_clock_mhz') AS clock, MAX(value) FILTER (WHERE metric = 'power_w') AS power,
    MAX(value) FILTER (WHERE metric = 'power_limit_w') AS power_limit,
    MAX(value) FILTER (WHERE metric = 'temperature_c') AS temperature,
    TRY_CAST(MAX(value) FILTER (WHERE metric = 'throttle_reasons') AS BIGINT) AS reasons,
    MAX(value) FILTER (WHERE metric = 'ecc_corrected') AS corrected,
    MAX(value) FILTER (WHERE metric = 'ecc_uncorrected') AS uncorrected
  FROM fabric.telemetry
  WHERE rank IS NOT NULL
  GROUP BY ALL
),
joined AS (
  SELECT DISTINCT run_id, rank, joined_by FROM fabric.telemetry_series WHERE rank IS NOT NULL
)
SELECT
  r.run_id, r.rank, ANY_VALUE(r.host) AS host, ANY_VALUE(r.device) AS device, ANY_VALUE(k.joined_by) AS joined_by,
  COUNT(r.clock) AS clock_readings, MEDIAN(r.clock) AS sm_clock_mhz, MIN(r.clock) AS least_sm_clock_mhz,
  MEDIAN(r.power) AS power_w, MEDIAN(r.power_limit) AS power_limit_w, MAX(r.temperature) AS most_temperature_c,
  BIT_OR(r.reasons) AS throttle_reasons, MAX(r.corrected) - MIN(r.corrected) AS new_ecc_corrected,
  MAX(r.uncorrected) - MIN(r.uncorrected) AS new_ecc_uncorrected,
  ANY_VALUE(l.status) AS lag_status, ANY_VALUE(l.lag_ns) / 1e6 AS lag_ms, ANY_VALUE(l.interval_ns) / 1e6 AS interval_ms
FROM reading AS r
JOIN joined AS k USING (run_id, rank)
JOIN fabric.telemetry_lag AS l USING (run_id, source_id)
LEFT JOIN judged AS j USING (run_id)
-- NVML's first bit: nothing runs, so that the clock says nothing.
WHERE COALESCE(r.reasons & 1, 0) = 0
  AND (l.status = 'no_times' OR l.status IN ('measured', 'assumed') AND r.at_ns BETWEEN j.start_ns AND j.end_ns)
GROUP BY r.run_id, r.rank
ORDER BY r.run_id, r.rank
