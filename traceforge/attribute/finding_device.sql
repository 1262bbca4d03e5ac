-- What telemetry says of the devices of slow ranks: one row a finding of slow compute whose devices were read at all.
-- Scope: run
CREATE OR REPLACE TABLE attribute.finding_device (
  -- Joins meta.run.run_id.
  run_id,
  -- Joins attribute.finding.finding_id within the run.
  finding_id,
  -- slower_clock, as_peers, too_coarse (too few readings in its time), no_clock (none of a clock) or elsewhere (read at
  -- another time, or none can say when).
  status,
  -- Readings of the clock from the finding's first iteration to its last, of its device that has fewest; of all under
  -- load where the tool prints no times.
  readings,
  -- From the first of these iterations to the end of the last, ns.
  duration_ns,
  -- Median time between two readings, ns; NULL without times.
  interval_ns,
  -- Median clock of its devices, MHz; NULL without readings.
  sm_clock_mhz,
  -- Median clock of the devices of the ranks that are not in the finding, MHz.
  peer_sm_clock_mhz,
  -- Median power of its devices, W.
  power_w,
  -- Median limit of their power, W.
  power_limit_w,
  -- Median temperature of its devices, °C.
  temperature_c,
  -- Why the driver held the clock in most readings, such as power cap; NULL where it states nothing.
  held_by,
  -- Share of readings with that reason.
  held_share,
  -- Whether all readings have times.
  is_timed,
  -- Whether local times were taken for UTC, while other zones fit as well.
  is_zone_guessed
) AS
WITH limits AS (
  SELECT
    MAX(value) FILTER (WHERE name = 'attribute.LEAST_CLOCK_READINGS') AS least_readings,
    MAX(value) FILTER (WHERE name = 'attribute.CLOCK_DROP') AS clock_drop,
    MAX(value) FILTER (WHERE name = 'attribute.HELD_SHARE') AS held_share,
    MAX(value) FILTER (WHERE name = 'attribute.LOADED_SHARE') AS loaded_share,
    MAX(value) FILTER (WHERE name = 'attribute.POWER_LIMIT_SHARE') AS power_limit_share
  FROM meta.threshold
),
slow AS (
  SELECT f.run_id, f.finding_id, f.ranks, MIN(i.start_ns) AS start_ns, MAX(i.start_ns + i.duration_ns) AS end_ns
  FROM attribute.finding_time AS f
  JOIN timeline.iteration AS i ON i.run_id = f.run_id AND i.iteration BETWEEN f.first_iteration AND f.last_iteration
  GROUP BY ALL
),
reading AS (
  SELECT run_id, rank, source_id, at_ns, COALESCE(at_ns, sample) AS place,
    MAX(value) FILTER (WHERE metric = 'sm_clock_mhz') AS clock,
    MAX(value) FILTER (WHERE metric = 'power_w') AS power,
    MAX(value) FILTER (WHERE metric = 'power_limit_w') AS power_limit,
    MAX(value) FILTER (WHERE metric = 'temperature_c') AS temperature,
    MAX(value) FILTER (WHERE metric IN ('busy_share', 'sm_active_share')) AS busy,
    TRY_CAST(MAX(value) FILTER (WHERE metric = 'throttle_reasons') AS BIGINT) AS reasons
  FROM fabric.telemetry
  WHERE rank IS NOT NULL AND EXISTS (SELECT 1 FROM slow AS s WHERE s.run_id = telemetry.run_id)
  GROUP BY ALL
),
usable AS (
  -- NVML's first bit: nothing runs, so that the clock says nothing.
  SELECT r.*, l.status, l.interval_ns, l.status = 'assumed' AND l.zones > 1 AS is_zone_guessed
  FROM reading AS r
  JOIN fabric.telemetry_lag AS l USING (run_id, source_id)
  CROSS JOIN limits AS t
  WHERE COALESCE(r.reasons & 1, 0) = 0 AND (r.at_ns IS NOT NULL OR COALESCE(r.busy, 1) >= t.loaded_share)
),
within AS (
  SELECT s.run_id, s.finding_id, s.end_ns - s.start_ns AS duration_ns, LIST_CONTAINS(s.ranks, u.rank) AS is_own, u.*
    EXCLUDE (run_id)
  FROM slow AS s
  JOIN usable AS u
    ON u.run_id = s.run_id
    AND (
      u.status = 'no_times'
      OR u.status IN ('measured', 'assumed') AND u.at_ns >= s.start_ns AND u.at_ns < s.end_ns
    )
),
device AS (
  SELECT run_id, finding_id, is_own, rank, COUNT(clock) AS readings, MEDIAN(clock) AS clock, MEDIAN(power) AS power,
    MEDIAN(power_limit) AS power_limit, MEDIAN(temperature) AS temperature, MEDIAN(interval_ns) AS interval_ns,
    COUNT(reasons) AS stated,
    AVG(CAST(reasons & 4 <> 0 AS INTEGER)) AS power_cap,
    AVG(CAST(reasons & (32 | 64) <> 0 AS INTEGER)) AS heat,
    AVG(CAST(reasons & 128 <> 0 AS INTEGER)) AS power_brake,
    AVG(CAST(reasons & 8 <> 0 AS INTEGER)) AS slowdown,
    AVG(CAST(reasons & 16 <> 0 AS INTEGER)) AS sync_boost,
    AVG(CAST(reasons & 2 <> 0 AS INTEGER)) AS setting,
    BOOL_AND(at_ns IS NOT NULL) AS is_timed, BOOL_OR(is_zone_guessed) AS is_zone_guessed
  FROM within
  GROUP BY ALL
),
own AS (
  SELECT run_id, finding_id, MIN(readings) AS readings, MEDIAN(clock) AS clock, MEDIAN(power) AS power,
    MEDIAN(power_limit) AS power_limit, MEDIAN(temperature) AS temperature, MEDIAN(interval_ns) AS interval_ns,
    BOOL_AND(is_timed) AS is_timed, BOOL_OR(is_zone_guessed) AS is_zone_guessed,
    -- The most telling one first where several hold the clock alike.
    LIST_SORT(
      [
        {'share': AVG(power_brake), 'place': 6, 'name': 'power brake'},
        {'share': AVG(heat), 'place': 5, 'name': 'heat'},
        {'share': AVG(power_cap), 'place': 4, 'name': 'power cap'},
        {'share': AVG(setting), 'place': 3, 'name': 'a clock setting'},
        {'share': AVG(sync_boost), 'place': 2, 'name': 'sync boost'},
        {'share': AVG(slowdown), 'place': 1, 'name': 'hardware slowdown'}
      ], 'DESC', 'NULLS LAST'
    )[1] AS reason
  FROM device
  WHERE is_own
  GROUP BY ALL
),
peer AS (
  SELECT run_id, finding_id, MIN(readings) AS readings, MEDIAN(clock) AS clock
  FROM device
  WHERE NOT is_own AND readings > 0
  GROUP BY ALL
),
read_at_all AS (
  SELECT DISTINCT s.run_id, s.finding_id, s.end_ns - s.start_ns AS duration_ns,
    BOOL_OR(t.metric = 'sm_clock_mhz') AS has_clock,
    BOOL_AND(COALESCE(l.status, 'elsewhere') IN ('elsewhere', 'unclear')) AS is_elsewhere,
    MEDIAN(l.interval_ns) AS interval_ns
  FROM slow AS s
  JOIN fabric.telemetry_series AS t ON t.run_id = s.run_id AND LIST_CONTAINS(s.ranks, t.rank)
  LEFT JOIN fabric.telemetry_lag AS l ON l.run_id = t.run_id AND l.source_id = t.source_id
  GROUP BY ALL
)
SELECT
  a.run_id, a.finding_id,
  CASE
    WHEN a.is_elsewhere THEN 'elsewhere'
    WHEN NOT a.has_clock THEN 'no_clock'
    WHEN LEAST(COALESCE(o.readings, 0), COALESCE(p.readings, 0)) < t.least_readings THEN 'too_coarse'
    WHEN o.clock < (1 - t.clock_drop) * p.clock THEN 'slower_clock'
    ELSE 'as_peers'
  END,
  COALESCE(o.readings, 0), a.duration_ns, CAST(COALESCE(o.interval_ns, a.interval_ns) AS BIGINT), o.clock, p.clock,
  o.power, o.power_limit, o.temperature,
  CASE
    WHEN o.reason.share >= t.held_share THEN o.reason.name
    WHEN o.power >= t.power_limit_share * o.power_limit THEN 'power at its limit'
  END,
  CASE WHEN o.reason.share >= t.held_share THEN o.reason.share END,
  COALESCE(o.is_timed, false), COALESCE(o.is_zone_guessed, false)
FROM read_at_all AS a
CROSS JOIN limits AS t
LEFT JOIN own AS o USING (run_id, finding_id)
LEFT JOIN peer AS p USING (run_id, finding_id)
ORDER BY a.run_id, a.finding_id
