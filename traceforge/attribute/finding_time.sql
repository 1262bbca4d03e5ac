-- When each finding of slow compute holds, and of which ranks: what telemetry is asked for. One row such a finding.
-- Scope: run
-- Reads: timeline.message, attribute.nic_use, attribute.delay, attribute.excess, attribute.pace, timeline.iteration, timeline.arrival, align.clock, graph.work, graph.arrival, replay.calibration, align.partner_count, operation.all_to_all_load
CREATE OR REPLACE TABLE attribute.finding_time (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins attribute.finding.finding_id within the run.
  finding_id INTEGER NOT NULL,
  -- Its ranks, ascending.
  ranks INTEGER[] NOT NULL,
  -- First iteration that is affected.
  first_iteration BIGINT NOT NULL,
  -- Last one.
  last_iteration BIGINT NOT NULL
)
