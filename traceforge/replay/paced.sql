-- What pacing by the hook of traceforge.live brought, measured while the job ran: one row a run that was paced.
--
-- Blocks of steps with and without pacing took turns; neighbouring blocks are a pair, and each pair says by what factor
-- throughput changed, beside what a replay of an earlier recording predicted.
-- Scope: run
-- Reads: raw.pacing, raw.pacing_policy, align.rank, timeline.rank_iteration
CREATE OR REPLACE TABLE replay.paced (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Policy with its parameters, as on the command line.
  policy VARCHAR NOT NULL,
  -- True where the hook decided but held nobody back.
  is_dry_run BOOLEAN NOT NULL,
  -- Pairs of blocks of which every step that counts was recorded on all ranks.
  pairs INTEGER NOT NULL,
  -- Throughput in paced blocks over throughput in unpaced ones; NULL without a pair.
  throughput_ratio DOUBLE,
  -- Lower end of its 95 % interval; NULL below three pairs.
  throughput_ratio_low DOUBLE,
  -- Upper end of its 95 % interval; NULL below three pairs.
  throughput_ratio_high DOUBLE,
  -- Mean delay that a rank kept before a step of a paced block, ns; NULL without such a step.
  delay_ns BIGINT,
  -- First step before which some rank had given pacing up; NULL where none did.
  off_from_iteration INTEGER,
  -- The ratio that a replay predicted; NULL where the hook was given none.
  foretold_ratio DOUBLE,
  -- Lower end of its 95 % interval.
  foretold_ratio_low DOUBLE,
  -- Upper end of its 95 % interval.
  foretold_ratio_high DOUBLE,
  -- Verdict of that replay (see replay.outcome).
  foretold_verdict VARCHAR,
  -- True where the two intervals have a value in common; NULL where one of them is missing.
  agrees BOOLEAN
)
