-- What stands out of the run's own noise. None is an answer too: see attribute.verdict.
-- Scope: run
-- Reads: timeline.coverage, timeline.message, timeline.segment, timeline.mesh, attribute.host_need, attribute.host_time, attribute.starvation, align.rank, attribute.nic_use, attribute.finding_device, operation.difference, operation.device, attribute.delay, attribute.excess, attribute.pace, timeline.iteration, timeline.arrival, align.clock, graph.work, graph.arrival, replay.calibration, align.partner_count, operation.all_to_all_load
CREATE OR REPLACE TABLE attribute.finding (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Number within the run, from 0, in order of importance: by delay, high confidence counted threefold; low last.
  finding_id INTEGER NOT NULL,
  -- Failure mode, as in attribute.delay.
  mode VARCHAR NOT NULL,
  -- Cause, as in attribute.delay; several_causes where no single one is most of it (see attribute.finding_part).
  cause VARCHAR NOT NULL,
  -- rank, ranks (slow alike), host (its ranks together, or what their transfers share), stage (of a pipeline), nic, link
  -- (between two ranks, or between hosts), communicator or job (all ranks).
  subject_kind VARCHAR NOT NULL,
  -- Who: a rank, several ranks (`3, 7`), a host, a NIC (`node1 mlx5_0`), the ends of a link
  -- (`3, 7` or `node1, node2`; a network between several hosts, too), a communicator's id; `all` for the job.
  subject VARCHAR NOT NULL,
  -- Its ranks, ascending.
  ranks INTEGER[] NOT NULL,
  -- Host of all of them; NULL where they are on several, or it is unknown.
  host VARCHAR,
  -- What it costs, mean over the judged iterations, ns: of findings of high or medium confidence (four at most) by
  -- replays without them, each finding's mean over the orders in which they could be fixed; of others the ledger's share.
  delay_ns_per_iteration BIGINT NOT NULL,
  -- Lower end of its 95 % interval (see attribute/findings/cost_interval.py), that of the run's couplings
  -- included, ns; 0 where ranks that were not recorded may come later still; NULL below three iterations.
  delay_low_ns BIGINT,
  -- Upper end, ns; NULL below three iterations.
  delay_high_ns BIGINT,
  -- The ledger's share (attribute.delay), mean over the judged iterations, ns; below the cost where the delay hides
  -- noise, which then owns a part.
  ledger_ns_per_iteration BIGINT NOT NULL,
  -- Delay over attribute.pace.pace_ns: part of the job's time.
  share DOUBLE NOT NULL,
  -- high, medium or low.
  confidence VARCHAR NOT NULL,
  -- Throughput gained if this delay alone were gone (replayed), as a share; NULL when not replayed.
  gain_if_fixed DOUBLE,
  -- Lower end of its 95 % interval; NULL below three iterations.
  gain_low DOUBLE,
  -- Upper end.
  gain_high DOUBLE,
  -- The same if all findings of high or medium confidence were gone together, as a share; alike in all rows.
  gain_if_all_fixed DOUBLE,
  -- Time it would cost an iteration in which all else is at its reference (replayed), ns.
  isolated_cost_ns BIGINT,
  -- Lower end of its 95 % interval, ns; NULL below three iterations.
  isolated_cost_low_ns BIGINT,
  -- Upper end, ns.
  isolated_cost_high_ns BIGINT,
  -- Time that ranks wait because of it, summed over ranks, over its own time above the reference: rank-seconds waited
  -- for each second of delay. NULL where it has none.
  amplification DOUBLE,
  -- Part of what removing it saves that comes from transfers, which slow down while ranks wait for it, ns; NULL where
  -- no such coupling was measured (replay.calibration).
  coupled_ns_per_iteration BIGINT,
  -- First affected iteration.
  first_iteration INTEGER NOT NULL,
  -- Last affected iteration.
  last_iteration INTEGER NOT NULL,
  -- persistent, transient, rotating, episode or one_off.
  pattern VARCHAR NOT NULL,
  -- Iteration that shows it best: the affected one that loses most.
  moment_iteration INTEGER NOT NULL,
  -- Of its ranks the one that loses most there; NULL for transfers.
  moment_rank INTEGER,
  -- One sentence for a person.
  summary VARCHAR NOT NULL,
  -- What to do next.
  next_step VARCHAR NOT NULL,
  -- Iterations judged: without warm-up and partial ones.
  iterations INTEGER NOT NULL,
  -- Of these, those in which the delay stands out.
  affected_iterations INTEGER NOT NULL,
  -- Mean delay over the affected iterations, ns.
  affected_delay_ns BIGINT NOT NULL,
  -- Share of this cause's delay, over all ranks, that is the subject's.
  dominance DOUBLE NOT NULL,
  -- Probability that a rank stands out so far if ranks were interchangeable, and that what is evenly spaced is so by
  -- chance; NULL for the job as a whole.
  p_value DOUBLE,
  -- Largest clock residual among the ranks, ns.
  clock_residual_ns BIGINT NOT NULL,
  -- Cause of the same subject that is far greater, or of ranks that are late when these transfers are slow, of which
  -- this may be a by-product; NULL where there is none.
  companion_of VARCHAR,
  -- What else is in its cost: a coupling whose size the run does not show, or what a replay would leave out. NULL
  -- where nothing; couplings that are neither measured (replay.calibration) nor named here are taken for absent.
  cost_note VARCHAR,
  -- Whether the cost is the most that it may be, as ranks that were not recorded may come later still.
  is_at_most BOOLEAN NOT NULL,
  -- Former name of ledger_ns_per_iteration; goes with the next version.
  booked_ns_per_iteration BIGINT NOT NULL,
  -- Former name of isolated_cost_ns; goes with the next version.
  harm_alone_ns BIGINT,
  -- Former name of isolated_cost_low_ns; goes with the next version.
  harm_alone_low_ns BIGINT,
  -- Former name of isolated_cost_high_ns; goes with the next version.
  harm_alone_high_ns BIGINT,
  -- Former name of p_value; goes with the next version.
  chance DOUBLE
)
