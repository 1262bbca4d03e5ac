-- The ledger: who owns how much of each iteration's excess. Sums to attribute.excess.excess_ns exactly.
-- Scope: run
-- Reads: align.rank, graph.arrival, graph.work, timeline.window, timeline.iteration, timeline.collective, replay.calibration
-- Reads: attribute.host_need, attribute.host_time, attribute.starvation
CREATE OR REPLACE TABLE attribute.delay (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Iteration number.
  iteration INTEGER NOT NULL,
  -- Culprit (not victim); NULL where the delay is no single rank's.
  rank INTEGER,
  -- Communicator whose transfers took longer; joins timeline.communicator. NULL for what is a rank's.
  communicator_id INTEGER,
  -- Of slow messages the lower of the two ranks between which they go; NULL of collectives, and for what is a rank's.
  low_rank INTEGER,
  -- The higher of them.
  high_rank INTEGER,
  -- Failure mode: synchronization_amplification, fabric_contention, gpu_locality, runtime_control_plane, unexplained.
  mode VARCHAR NOT NULL,
  -- Cause, refining the mode; faster_than_reference is a credit of everyone's.
  cause VARCHAR NOT NULL,
  -- Part of the excess, ns; negative where it is a credit.
  delay_ns BIGINT NOT NULL
)
