-- What an event is, by its category and name (rules: vocabulary.toml).
-- Scope: run
-- Reads: raw.event_kind
CREATE OR REPLACE TABLE align.name_class (
  -- Category as written in the file; joins raw.event.category (NULL joins NULL).
  category VARCHAR,
  -- Name as written; joins raw.event.name.
  name VARCHAR,
  -- Category in today's spelling.
  canonical_category VARCHAR,
  -- Class, one of: {event_classes}.
  class VARCHAR NOT NULL,
  -- Collective named by the event, such as all_reduce; NULL where the name does not say.
  op VARCHAR,
  -- True for device work of a library whose calls PyTorch records (record_param_comms).
  is_recorded BOOLEAN NOT NULL
)
