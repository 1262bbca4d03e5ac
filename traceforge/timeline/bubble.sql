-- Why a rank of a pipeline idles: one row an iteration, rank and kind. The kinds of a rank sum to the ns to the time of its
-- iteration in which neither compute, nor a copy, nor a collective among ranks of its own stage runs on it.
--
-- A message that waits or moves is no work, nor is a collective in which stages meet. Fill, drain and imbalance are those
-- of the schedule played at the usual duration of each pass, were the hosts of all stages as prompt; they are the same in all
-- iterations but the first of a recording. Ranks and iterations of which not all turns are known (timeline.microbatch) have no rows.
-- Scope: iteration
-- Reads: timeline.microbatch, timeline.schedule, timeline.role, timeline.message, timeline.segment, timeline.arrival, timeline.collective, timeline.communicator, timeline.rank_iteration, timeline.iteration, align.message
CREATE OR REPLACE TABLE timeline.bubble (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Iteration number.
  iteration INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- fill (equal stages and free messages: before the rank's first backward pass), drain (the same, later, and from there
  -- until the first stage begins the next iteration), imbalance (what stages of unequal work add), transfer (what
  -- messages add that take time), launch (the device has nothing to do although its input is there: the host is late),
  -- late_peer (the rest: what ranks cost that take longer than usual; negative on a rank that is late itself).
  kind VARCHAR NOT NULL,
  -- Time, ns; imbalance, transfer and late_peer may be negative.
  duration_ns BIGINT NOT NULL
)
