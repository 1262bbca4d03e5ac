-- What a pacing hook of traceforge.live decided before each step of a rank.
CREATE TABLE raw.pacing (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Number of the step that follows the decision; joins align.step.iteration.
  iteration INTEGER NOT NULL,
  -- Arm of the trial that the step belongs to: paced, unpaced, or warm_up before the first block.
  arm VARCHAR NOT NULL,
  -- State of the hook: on, dry_run (decides, holds nobody back) or off (it gave pacing up).
  state VARCHAR NOT NULL,
  -- Delay that the policy asked for, ns.
  asked_delay_ns BIGINT NOT NULL,
  -- Delay that was kept before the step, ns; part of the step.
  delay_ns BIGINT NOT NULL,
  -- Mean wait over the collectives of the step before, as the rank took it to be, ns.
  wait_ns BIGINT NOT NULL
);

-- The policy of a pacing hook, one row a rank that has one.
CREATE TABLE raw.pacing_policy (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Policy with its parameters, as on the command line.
  policy VARCHAR NOT NULL,
  -- Verdict of the replay that made the prediction (see replay.outcome).
  foretold_verdict VARCHAR,
  -- Throughput with the policy over throughput without, as a replay predicted it; NULL where the hook was told none.
  foretold_ratio DOUBLE,
  -- Lower end of its 95 % interval.
  foretold_ratio_low DOUBLE,
  -- Upper end of its 95 % interval.
  foretold_ratio_high DOUBLE,
  -- First step of the first block.
  first_step INTEGER,
  -- Steps of a block.
  block_steps INTEGER,
  -- Steps at the begin of a block that do not count.
  settling_steps INTEGER
);
