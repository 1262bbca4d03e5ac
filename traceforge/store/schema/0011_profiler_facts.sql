-- What a profiler recorded, under names that belong to no format: every source of timelines fills the same tables.
DROP VIEW raw.kineto_event;

-- One row a profile (a profiler's file, or the part of one that is a single rank's): what stands beside its events.
CREATE TABLE raw.profile (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Version of the format, as the file states it.
  schema_version INTEGER,
  -- What was added to every time of the file to make raw_start_ns; 0 when it states nothing.
  base_time_ns BIGINT NOT NULL,
  -- Rank that the file states.
  rank INTEGER,
  -- Number of ranks that the file states.
  world_size INTEGER,
  -- Communication backend that the file states, such as nccl or gloo.
  backend VARCHAR,
  -- NCCL version that the file states.
  nccl_version VARCHAR,
  -- Host name that the file states (PyTorch 2.13 and later; Nsight Systems).
  host_name VARCHAR,
  -- Name of the first device.
  device_name VARCHAR,
  -- Identifier of the profiling session.
  trace_id VARCHAR,
  -- Everything beside the events, as the JSON text of one object.
  metadata VARCHAR NOT NULL
);

INSERT INTO raw.profile
SELECT
  source_id, schema_version, base_time_ns, rank, world_size, backend, nccl_version, host_name,
  device_name, trace_id, metadata
FROM raw.kineto_file;

DROP TABLE raw.kineto_file;

-- One row a process group that a profile lists beside its events.
CREATE TABLE raw.process_group (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Process group name, unique in a job.
  process_group_name VARCHAR,
  -- Description, such as default_pg or mesh_dp.
  description VARCHAR,
  -- Backend of the group.
  backend VARCHAR,
  -- Number of member ranks.
  size INTEGER,
  -- Member ranks as the JSON text of a list; may be shortened by PyTorch for large groups.
  ranks VARCHAR
);

INSERT INTO raw.process_group
SELECT source_id, process_group_name, description, backend, size, ranks
FROM raw.kineto_process_group;

DROP TABLE raw.kineto_process_group;

-- One row a (process, thread) pair of a profile; a device stream is a thread of its device.
CREATE TABLE raw.track (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Small integer within the file.
  track_id INTEGER NOT NULL,
  -- pid as written.
  process VARCHAR,
  -- tid as written.
  thread VARCHAR,
  -- Name of the process, where stated.
  process_name VARCHAR,
  -- Labels of the process, where stated.
  process_labels VARCHAR,
  -- Name of the thread or stream, where stated.
  thread_name VARCHAR
);

INSERT INTO raw.track
SELECT source_id, track_id, process, thread, process_name, process_labels, thread_name
FROM raw.kineto_track;

DROP TABLE raw.kineto_track;

-- What recurs from event to event of a profile: events of one kind differ in times and identifiers only.
CREATE TABLE raw.event_kind (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Small integer within the file.
  kind_id INTEGER NOT NULL,
  -- Chrome trace phase: X complete, i instant, s/f/t flow, M metadata, C counter, B/E begin/end; NULL when absent.
  phase VARCHAR,
  -- Category in Kineto's words, such as kernel, cuda_runtime, cpu_op; as written in a Kineto file; NULL when absent.
  category VARCHAR,
  -- Name as written.
  name VARCHAR,
  -- Joins raw.track.track_id within the source.
  track_id INTEGER
);

INSERT INTO raw.event_kind
SELECT source_id, kind_id, phase, category, name, track_id
FROM raw.kineto_kind;

DROP TABLE raw.kineto_kind;

-- One row an event of a profile; raw.event shows it with its kind.
CREATE TABLE raw.occurrence (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Number of the event in its profile, from 0: its position in a file that lists events.
  event_id BIGINT NOT NULL,
  -- Joins raw.event_kind.kind_id within the source.
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

INSERT INTO raw.occurrence
SELECT
  source_id, event_id, kind_id, raw_start_ns, duration_ns, correlation, external_id, flow_id, stream,
  device, size_bytes, record_function_id
FROM raw.kineto_occurrence;

DROP TABLE raw.kineto_occurrence;

-- One row an event that carries arguments of a collective.
CREATE TABLE raw.collective (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.event.event_id within the source.
  event_id BIGINT NOT NULL,
  -- Collective name, such as allreduce.
  collective_name VARCHAR,
  -- Process group name.
  process_group_name VARCHAR,
  -- Process group description.
  process_group_description VARCHAR,
  -- Process group ranks as written (a text such as [0, 1]; may be shortened).
  process_group_ranks VARCHAR,
  -- Number of ranks.
  group_size INTEGER,
  -- Elements sent.
  in_elements BIGINT,
  -- Elements received.
  out_elements BIGINT,
  -- Element type as written, such as Float or BFloat16.
  dtype VARCHAR,
  -- Split sizes sent, as written.
  in_split VARCHAR,
  -- Split sizes received, as written.
  out_split VARCHAR,
  -- Sequence number in the process group (PyTorch 2.12 and later).
  sequence BIGINT,
  -- Whether the call was asynchronous.
  is_asynchronous BOOLEAN,
  -- Rank in the group (PyTorch 2.5 and later).
  group_rank INTEGER,
  -- First global rank of the group, where ranks are evenly spaced.
  global_rank_start INTEGER,
  -- Distance between the global ranks of the group.
  global_rank_stride INTEGER
);

INSERT INTO raw.collective
SELECT
  source_id, event_id, collective_name, process_group_name, process_group_description,
  process_group_ranks, group_size, in_elements, out_elements, dtype, in_split, out_split, sequence,
  is_asynchronous, group_rank, global_rank_start, global_rank_stride
FROM raw.kineto_collective;

DROP TABLE raw.kineto_collective;

-- Arguments of events as JSON text: of communication by default, of every event with --args all.
CREATE TABLE raw.argument (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.event.event_id within the source.
  event_id BIGINT NOT NULL,
  -- The JSON text of the event's args, as written.
  args VARCHAR NOT NULL
);

INSERT INTO raw.argument
SELECT source_id, event_id, args
FROM raw.kineto_argument;

DROP TABLE raw.kineto_argument;

-- One row a call of a host operation that multiplies, convolves or attends, with the inputs that its trace records.
CREATE TABLE raw.operation_input (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.event.event_id within the source.
  event_id BIGINT NOT NULL,
  -- Shapes of the inputs as the JSON text of a list.
  shapes VARCHAR NOT NULL,
  -- Element types of the inputs as the JSON text of a list; NULL where the trace states none.
  types VARCHAR,
  -- Values of the inputs that are no tensors, as the JSON text of a list; NULL where the trace states none.
  concrete VARCHAR
);

INSERT INTO raw.operation_input
SELECT source_id, event_id, shapes, types, concrete
FROM raw.kineto_input;

DROP TABLE raw.kineto_input;

-- One row an event of a profile, of any phase and category.
CREATE VIEW raw.event (
  -- Joins meta.source.source_id.
  source_id,
  -- Number of the event in its profile, from 0: its position in a file that lists events.
  event_id,
  -- Chrome trace phase: X complete, i instant, s/f/t flow, M metadata, C counter, B/E begin/end; NULL when absent.
  phase,
  -- Category in Kineto's words, such as kernel, cuda_runtime, cpu_op; as written in a Kineto file; NULL when absent.
  category,
  -- Name as written.
  name,
  -- Joins raw.track.track_id within the source.
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
FROM raw.occurrence AS o
JOIN raw.event_kind AS k USING (source_id, kind_id);

-- Former name of raw.event, which goes with the next version.
CREATE VIEW raw.kineto_event (
  -- Joins meta.source.source_id.
  source_id,
  -- Number of the event in its profile, from 0: its position in a file that lists events.
  event_id,
  -- Chrome trace phase: X complete, i instant, s/f/t flow, M metadata, C counter, B/E begin/end; NULL when absent.
  phase,
  -- Category in Kineto's words, such as kernel, cuda_runtime, cpu_op; as written in a Kineto file; NULL when absent.
  category,
  -- Name as written.
  name,
  -- Joins raw.track.track_id within the source.
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
FROM raw.occurrence AS o
JOIN raw.event_kind AS k USING (source_id, kind_id);
