-- What a communication event moves, from its arguments. Events without such arguments are absent.
-- Scope: source
-- Reads: raw.collective, raw.argument, raw.event, align.rank_list, align.name_class, align.file_batch
-- In parts by: align.file_batch
CREATE OR REPLACE TABLE align.payload (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.event.event_id within the source.
  event_id BIGINT NOT NULL,
  -- Collective named by the arguments; NULL where they name none.
  op VARCHAR,
  -- Element type in lower case; NULL when unknown.
  dtype VARCHAR,
  -- Bytes of the side that gives the collective its size (see align/collective_names.toml); NULL when unknown.
  size_bytes BIGINT,
  -- Process group name; NULL when not recorded.
  process_group_name VARCHAR,
  -- Member ranks: joins align.rank_list.rank_list_id; NULL when not recorded, or not all are known.
  rank_list_id INTEGER,
  -- Number of members stated; NULL when not recorded.
  group_size INTEGER,
  -- Sequence number in the process group; NULL when not recorded.
  sequence BIGINT,
  -- Global rank at the other end of a send or receive; NULL when not recorded.
  peer INTEGER,
  -- Place of that rank in the process group; NULL when not recorded.
  peer_place INTEGER,
  -- Tag of a message; NULL when not recorded.
  tag BIGINT
)
