-- Lists of ranks as traces write them, each read once: one row a distinct list, to which calls refer.
-- Scope: run
-- Reads: raw.collective, raw.process_group
CREATE OR REPLACE TABLE align.rank_list (
  -- Small integer.
  rank_list_id INTEGER NOT NULL,
  -- The list as written; PyTorch writes the first of more than 30 ranks, dots, and perhaps the last one.
  written VARCHAR NOT NULL,
  -- Number of members stated with it; NULL when not recorded.
  group_size INTEGER,
  -- First member stated with it; NULL when not recorded.
  first_rank INTEGER,
  -- Distance between members stated with it, -1 where it varies; NULL when not recorded.
  stride INTEGER,
  -- Member ranks in the order written; NULL where what is written does not tell them all.
  ranks INTEGER[]
)
