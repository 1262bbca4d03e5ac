-- How late the slowest rank will be at more ranks, from one run: order statistics of its ranks' own times.
--
-- A rank's own time is its iteration less exposed communication. Up to four times the measured ranks, ranks are drawn
-- as blocks from the measured ones; beyond, a generalised Pareto tail is fitted above the 90 % quantile of the ranks'
-- distance from the mean rank, and refused where its shape may be 0.5 or more. This is a part of the step, and no
-- scaling curve.
-- Scope: run
-- Reads: timeline.phase, timeline.iteration, align.rank, meta.run
CREATE OR REPLACE TABLE forecast.outlook (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Number of ranks.
  ranks INTEGER NOT NULL,
  -- measured, rank_blocks or tail.
  method VARCHAR NOT NULL,
  -- The quantile of one rank's own time that is the median of the slowest of so many: what sets the step.
  step_quantile DOUBLE NOT NULL,
  -- Expected own time of the slowest rank above that of the mean rank, ns; NULL where it is refused.
  slowest_ns BIGINT,
  -- Lower end of its bootstrap interval, ns: nominal 95 %, but on independent draws of 16 ranks it held the truth at
  -- 64 in 73 to 87 % of cases.
  low_ns BIGINT,
  -- Upper end of its bootstrap interval, ns.
  high_ns BIGINT,
  -- Share of the variance between ranks that persists over the run, 0..1: that of machines, not of moments.
  persistent_share DOUBLE NOT NULL,
  -- Why there is no number; NULL where there is one.
  refusal VARCHAR
)
