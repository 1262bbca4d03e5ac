-- One row a kernel of a collective whose trace says how NCCL carried it (PyTorch's Perfetto traces).
CREATE TABLE raw.collective_choice (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.event.event_id within the source.
  event_id BIGINT NOT NULL,
  -- Algorithm in lower case, such as ring, tree or nvls; NULL where not stated.
  algorithm VARCHAR,
  -- Protocol in lower case: ll, ll128 or simple; NULL where not stated.
  protocol VARCHAR,
  -- Channels; NULL where not stated.
  channel_count INTEGER,
  -- NCCL's own number of the operation, which counts each operation of a communicator by itself; NULL where not stated.
  sequence BIGINT
);
