-- One row a call of a host operation that multiplies, convolves or attends, with the inputs that its trace records.
CREATE TABLE raw.kineto_input (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.kineto_event.event_id within the source.
  event_id BIGINT NOT NULL,
  -- Shapes of the inputs as the JSON text of a list.
  shapes VARCHAR NOT NULL,
  -- Element types of the inputs as the JSON text of a list; NULL where the trace states none.
  types VARCHAR,
  -- Values of the inputs that are no tensors, as the JSON text of a list; NULL where the trace states none.
  concrete VARCHAR
);
