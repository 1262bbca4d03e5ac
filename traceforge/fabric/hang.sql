-- What the flight recorder dumps of a run say of a hang: two rows a run at most, none without dumps.
-- Scope: run
-- Reads: fabric.group_progress, fabric.hang_call, fabric.hang_dump, fabric.process_group, raw.flight_recorder_entry
CREATE OR REPLACE TABLE fabric.hang (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- 0 for what comes first: what explains the most, then the earliest blocked call.
  place INTEGER NOT NULL,
  -- mismatch (ranks make different calls), order (ranks wait for each other in a ring), absent (ranks that others wait
  -- for make no call), ahead (few ranks wait in a call that the many others never made, and may be the odd ones), stuck
  -- (a rank's device does not finish what others finished), unstarted (it has not begun what others have begun), transfer
  -- (all are in the same call and none gets out), unknown (who is waited for has no dump, or the dumps are not of one
  -- moment), none (no call waits).
  kind VARCHAR NOT NULL,
  -- Joins fabric.process_group.group_id within the run: the group of the blocked call; NULL where there is none.
  group_id INTEGER,
  -- Sequence number of the blocked call in the group; NULL for sends and receives.
  sequence BIGINT,
  -- The blocked call as PyTorch names it, without its backend; NULL where no dump holds it.
  op VARCHAR,
  -- Shapes sent, as JSON text, by the first rank that waits in it.
  in_shapes VARCHAR,
  -- Their element types, as JSON text.
  in_dtypes VARCHAR,
  -- Ranks that hold up the others, ascending; empty where none can be named.
  ranks INTEGER[] NOT NULL,
  -- Ranks that wait, for these or for ranks that wait for them, ascending.
  waiting_ranks INTEGER[] NOT NULL,
  -- Ranks of the job without a dump, ascending.
  without_dump INTEGER[] NOT NULL,
  -- What holds up the job, in one sentence.
  summary VARCHAR NOT NULL,
  -- What shows it, in a few sentences; empty where there is no more to say.
  detail VARCHAR NOT NULL,
  -- What to do next.
  next_step VARCHAR NOT NULL,
  -- Frames of the blocked call on the first rank that waits in it, innermost first; NULL where not recorded.
  stack VARCHAR,
  -- Joins meta.source.source_id: the dump that shows it.
  source_id INTEGER NOT NULL
)
