-- Configuration in the logs that can cost time, each with the line that shows it. None is a measurement: how long ranks
-- wait for it only a timeline shows.
-- Scope: run
-- Reads: fabric.choice, fabric.collective, fabric.communicator, fabric.communicator_match, fabric.edge
-- Reads: fabric.group_progress, fabric.hang, fabric.hang_call, fabric.hang_dump, fabric.is_same_network, fabric.job
-- Reads: fabric.link, fabric.network_end, fabric.load, fabric.stated_members
-- Reads: fabric.measured, fabric.member, fabric.nic, fabric.nic_distance, fabric.nic_load, fabric.operation
-- Reads: fabric.process, fabric.process_group, fabric.process_host, fabric.ring, fabric.step_of_event, fabric.telemetry
-- Reads: fabric.telemetry_lag, fabric.telemetry_series, fabric.tree, fabric.unwinds_after, fabric.warns_alone
CREATE OR REPLACE TABLE fabric.finding (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Number within the run, from 0; problems come first.
  finding_id INTEGER NOT NULL,
  -- Name of the finding's file in `fabric/findings/`, such as socket_fallback.
  code VARCHAR NOT NULL,
  -- Failure mode it may lead to, as in attribute.delay.
  mode VARCHAR NOT NULL,
  -- problem, or notice where it may be intended or be the best there is.
  severity VARCHAR NOT NULL,
  -- rank, host, communicator, link or job.
  subject_kind VARCHAR NOT NULL,
  -- Name or number of the subject; `all` for the job.
  subject VARCHAR NOT NULL,
  -- Ranks in the job that are affected, ascending; empty where it is no rank in particular.
  ranks INTEGER[] NOT NULL,
  -- One sentence for a person.
  summary VARCHAR NOT NULL,
  -- What to do next.
  next_step VARCHAR NOT NULL,
  -- Kind of evidence: configuration evidence, error message, flight recorder, or time stamps of calls on one host.
  basis VARCHAR NOT NULL,
  -- Joins meta.source.source_id: the log that shows it.
  source_id INTEGER NOT NULL,
  -- Line there, from 1.
  line BIGINT NOT NULL,
  -- How many lines of the run's logs show it.
  citation_count BIGINT NOT NULL
)
