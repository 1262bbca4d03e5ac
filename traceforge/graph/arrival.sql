-- Each rank's chain of collectives: one row a collective of an iteration, in the order of issue on the rank.
--
-- Positions agree across ranks: the collective at position p of an iteration has that position on every member. Where
-- ranks issue different collectives (stages of a pipeline) a rank's positions have holes. Iterations in which ranks
-- issue them in contradicting orders are absent and counted in meta.issue.
-- Scope: run
-- Reads: graph.queued, align.call, align.unmatched, align.unmatched_endpoint, align.step, timeline.arrival, timeline.window, timeline.segment, timeline.collective, timeline.message, timeline.role, align.clock
CREATE OR REPLACE TABLE graph.arrival (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Iteration number.
  iteration INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Number of the collective within the iteration on this rank, from 0, in order of issue.
  position INTEGER NOT NULL,
  -- Joins timeline.collective.collective_id.
  collective_id BIGINT NOT NULL,
  -- Arrival, aligned clock, ns; never before that of the position before. Where the stream holds the collective back
  -- (queued_position), when the rank was ready for it.
  arrival_ns BIGINT NOT NULL,
  -- End on this rank, aligned clock, ns; of the meetings of one call, but for the one that began last, the earlier end of
  -- the two sides, or where the message would be through in its usual time if that is earlier.
  end_ns BIGINT NOT NULL,
  -- Position of the collective whose end the rank awaits between this arrival and the next; NULL when it awaits none.
  awaited_position INTEGER,
  -- Position of the collective on the same stream that has to end before this one can start; NULL where the stream was
  -- free.
  queued_position INTEGER,
  -- Position of the collective before it on the same stream, whether it held this one up or the stream was free by then;
  -- NULL for the first of a stream.
  behind_position INTEGER,
  -- True where all ranks issue equally many collectives in this iteration, in one order, or all collectives in it have all
  -- their members and no call is without a partner; only such are replayed.
  is_regular BOOLEAN NOT NULL,
  -- Positions of the further meetings of the call awaited (a batch of sends and receives); the rank awaits them at the
  -- positions after this one, which it has free for that. NULL where there are none.
  also_awaited INTEGER[]
)
