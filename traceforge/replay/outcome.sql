-- What each policy would have done to the recorded iterations.
--
-- Without couplings the replay is a barrier model: in it no delay can make anything end earlier. A gain needs something
-- that is slower where ranks are early, with its interval from replay.calibration. Where that is unknown the interval
-- runs from no coupling to the largest that is likely, and no policy is called supported.
-- Scope: run
-- Reads: graph.arrival, graph.work, timeline.window, timeline.iteration, align.rank, replay.calibration, timeline.coverage
CREATE OR REPLACE TABLE replay.outcome (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Policy, as on the command line.
  policy VARCHAR NOT NULL,
  -- Its parameters, as on the command line; empty where it has none.
  parameters VARCHAR NOT NULL,
  -- Iterations a second under the policy over iterations a second without, couplings at their best values.
  throughput_ratio DOUBLE NOT NULL,
  -- Lower end of its 95 % interval.
  throughput_ratio_low DOUBLE NOT NULL,
  -- Upper end; where it is unknown how transfers grow with waits, the ratio at the largest growth that is likely.
  throughput_ratio_high DOUBLE NOT NULL,
  -- Standard deviation over mean of the iteration time; NULL below two iterations.
  cv DOUBLE,
  -- Median iteration time, ns.
  p50_ns BIGINT NOT NULL,
  -- 95 % point of the iteration time, ns.
  p95_ns BIGINT NOT NULL,
  -- 99 % point of the iteration time, ns.
  p99_ns BIGINT NOT NULL,
  -- Largest gain that any pacing is likely to bring, as a share of throughput: that of waits that slow nothing down, at the upper
  -- ends of the couplings; where it is unknown how transfers grow with waits, at the largest growth that is likely.
  gain_ceiling DOUBLE NOT NULL,
  -- supported, no_effect, harm or not_identifiable.
  verdict VARCHAR NOT NULL,
  -- Why.
  reason VARCHAR NOT NULL,
  -- Mean delay injected a rank and iteration, ns.
  delay_ns BIGINT NOT NULL,
  -- Share of (rank, iteration)s that were delayed.
  engaged_share DOUBLE NOT NULL,
  -- The ratio if nothing were slower where ranks are early (kappa = 0): what the delays cost.
  throughput_ratio_without_coupling DOUBLE NOT NULL,
  -- The ratio with the same delays dealt out to ranks at random in each iteration.
  throughput_ratio_placebo DOUBLE NOT NULL,
  -- Lower end of the 95 % interval of cv; NULL below three iterations.
  cv_low DOUBLE,
  -- Upper end.
  cv_high DOUBLE,
  -- Share of iterations in which a rank that is held back comes last, and would not have without.
  overshoot_share DOUBLE NOT NULL,
  -- Lower end of the 95 % interval of the ratio over as many steps to come, which are drawn anew, and in which what is
  -- saved may go on growing or shrinking as it did; NULL below three steps.
  throughput_ratio_next_low DOUBLE,
  -- Upper end.
  throughput_ratio_next_high DOUBLE
)
