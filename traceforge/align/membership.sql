-- Which group of ranks each collective call belongs to. Calls whose group is unknown are absent and counted in meta.issue.
-- Scope: run
-- Reads: align.call, align.step, align.rank_list, raw.process_group, align.rank, meta.run
CREATE OR REPLACE TABLE align.membership (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Global rank.
  rank INTEGER NOT NULL,
  -- Joins align.call.call_id within the rank.
  call_id BIGINT NOT NULL,
  -- Joins align.communicator.communicator_id within the run.
  communicator_id BIGINT NOT NULL,
  -- How it is known: stated (by the trace), assumed (the job has one group), inferred (the only listed group whose
  -- members' calls overlap in time) or unknown (nothing names the members, and only this rank was recorded).
  origin VARCHAR NOT NULL
)
