-- One row a finding of a run, as attribute.finding had it.
CREATE TABLE history.finding (
  -- Joins history.run.run_key.
  run_key VARCHAR NOT NULL,
  -- Number within the run, from 0, the most important first.
  finding_id INTEGER NOT NULL,
  -- Failure mode.
  mode VARCHAR NOT NULL,
  -- Cause.
  cause VARCHAR NOT NULL,
  -- rank, ranks, host, stage, nic, link, communicator or job.
  subject_kind VARCHAR NOT NULL,
  -- Who it is about.
  subject VARCHAR NOT NULL,
  -- Host of all its ranks; NULL where they are on several, or it is unknown.
  host VARCHAR,
  -- high, medium or low.
  confidence VARCHAR NOT NULL,
  -- persistent, transient, rotating, episode or one_off.
  pattern VARCHAR,
  -- What it costs, mean over the judged iterations, ns.
  delay_ns_per_iteration BIGINT,
  -- Lower end of its 95 % interval, ns; NULL where there is none.
  delay_low_ns BIGINT,
  -- Upper end, ns.
  delay_high_ns BIGINT,
  -- Delay over the mean iteration, or, where iterations overlap, over the time from one to the next.
  share DOUBLE,
  -- Whether its ranks do more work than their peers (operation.difference): that accuses no host.
  is_more_work BOOLEAN NOT NULL,
  -- One sentence for a person.
  summary VARCHAR
)
