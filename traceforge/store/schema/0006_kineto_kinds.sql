-- What recurs from event to event of a Kineto file: events of one kind differ in times and identifiers only.
CREATE TABLE raw.kineto_kind (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Small integer within the file.
  kind_id INTEGER NOT NULL,
  -- Chrome trace phase: X complete, i instant, s/f/t flow, M metadata, C counter, B/E begin/end; NULL when absent.
  phase VARCHAR,
  -- Category as written; NULL when absent.
  category VARCHAR,
  -- Name as written.
  name VARCHAR,
  -- Joins raw.kineto_track.track_id within the source.
  track_id INTEGER
);

INSERT INTO raw.kineto_kind
SELECT
  source_id,
  ROW_NUMBER() OVER (PARTITION BY source_id ORDER BY MIN(event_id)) - 1,
  phase,
  category,
  name,
  track_id
FROM raw.kineto_event
GROUP BY source_id, phase, category, name, track_id;

-- One row an event of a Kineto file; raw.kineto_event shows it with its kind.
CREATE TABLE raw.kineto_occurrence (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Position in the file's list of events, from 0.
  event_id BIGINT NOT NULL,
  -- Joins raw.kineto_kind.kind_id within the source.
  kind_id INTEGER NOT NULL,
  -- Start on the rank's own clock, ns since the epoch where the file says so, exact; NULL when absent.
  raw_start_ns BIGINT,
  -- Duration, ns, exact, never negative; NULL when absent.
  duration_ns BIGINT,
  -- Joins a launch call to what it launched.
  correlation BIGINT,
  -- External id: identifier of the host operation that caused the event (its meaning varies by PyTorch era).
  external_id BIGINT,
  -- Identifier of a flow arrow (phases s, f, t).
  flow_id BIGINT,
  -- Device stream number; NULL on host events.
  stream INTEGER,
  -- Device number; NULL on host events.
  device INTEGER,
  -- Bytes moved, of copies and memory events.
  size_bytes BIGINT,
  -- Record function id, which PyTorch execution traces share.
  record_function_id BIGINT
);

INSERT INTO raw.kineto_occurrence
SELECT
  e.source_id,
  e.event_id,
  k.kind_id,
  e.raw_start_ns,
  e.duration_ns,
  e.correlation,
  e.external_id,
  e.flow_id,
  e.stream,
  e.device,
  e.size_bytes,
  e.record_function_id
FROM raw.kineto_event AS e
JOIN raw.kineto_kind AS k
  ON k.source_id = e.source_id
  AND k.phase IS NOT DISTINCT FROM e.phase
  AND k.category IS NOT DISTINCT FROM e.category
  AND k.name IS NOT DISTINCT FROM e.name
  AND k.track_id IS NOT DISTINCT FROM e.track_id
ORDER BY e.source_id, e.event_id;

DROP TABLE raw.kineto_event;

-- One row an event of a Kineto file, of any phase and category.
CREATE VIEW raw.kineto_event (
  -- Joins meta.source.source_id.
  source_id,
  -- Position in the file's list of events, from 0.
  event_id,
  -- Chrome trace phase: X complete, i instant, s/f/t flow, M metadata, C counter, B/E begin/end; NULL when absent.
  phase,
  -- Category as written; NULL when absent.
  category,
  -- Name as written.
  name,
  -- Joins raw.kineto_track.track_id within the source.
  track_id,
  -- Start on the rank's own clock, ns since the epoch where the file says so, exact; NULL when absent.
  raw_start_ns,
  -- Duration, ns, exact, never negative; NULL when absent.
  duration_ns,
  -- Joins a launch call to what it launched.
  correlation,
  -- External id: identifier of the host operation that caused the event (its meaning varies by PyTorch era).
  external_id,
  -- Identifier of a flow arrow (phases s, f, t).
  flow_id,
  -- Device stream number; NULL on host events.
  stream,
  -- Device number; NULL on host events.
  device,
  -- Bytes moved, of copies and memory events.
  size_bytes,
  -- Record function id, which PyTorch execution traces share.
  record_function_id
) AS
SELECT
  o.source_id,
  o.event_id,
  k.phase,
  k.category,
  k.name,
  k.track_id,
  o.raw_start_ns,
  o.duration_ns,
  o.correlation,
  o.external_id,
  o.flow_id,
  o.stream,
  o.device,
  o.size_bytes,
  o.record_function_id
FROM raw.kineto_occurrence AS o
JOIN raw.kineto_kind AS k USING (source_id, kind_id);
