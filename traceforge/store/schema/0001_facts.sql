-- What the store knows about runs, files and losses (meta), and what Kineto files said (raw.kineto_*).
CREATE SCHEMA meta;

CREATE SCHEMA raw;

-- One row a training run held in this database.
CREATE TABLE meta.run (
  -- Small integer that every other table carries.
  run_id INTEGER PRIMARY KEY,
  -- Name given with --run, else the name of the ingested folder.
  run_name VARCHAR NOT NULL UNIQUE,
  -- Number of ranks the job says it has; NULL when no file says it.
  world_size INTEGER
);

-- One row a file that was ingested.
CREATE TABLE meta.source (
  -- Small integer that raw rows carry.
  source_id INTEGER PRIMARY KEY,
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Name of the source that read it, such as kineto.
  kind VARCHAR NOT NULL,
  -- Path from the folder given at ingest time on.
  path VARCHAR NOT NULL,
  -- Global rank the file belongs to; NULL when unknown.
  rank INTEGER,
  -- How the rank is known: metadata, rank_regex, file_name, folder_name or unknown.
  rank_origin VARCHAR NOT NULL,
  -- Host name stated by the file or its name; NULL when unknown.
  host VARCHAR,
  -- used, or empty where the file holds no event; align.rank says which file speaks for a rank.
  status VARCHAR NOT NULL,
  -- Events, records or nodes seen in the file.
  event_count BIGINT NOT NULL,
  -- Of these, how many are stored as rows; the rest is counted in meta.issue.
  stored_count BIGINT NOT NULL,
  -- Size of the file on disk, bytes.
  size_bytes BIGINT NOT NULL,
  -- SHA-256 of the file on disk.
  content_hash VARCHAR NOT NULL
);

-- Everything skipped, repaired, guessed or found inconsistent; nothing is lost without a row here.
CREATE TABLE meta.issue (
  -- Joins meta.run.run_id.
  run_id INTEGER NOT NULL,
  -- Joins meta.source.source_id; NULL when the issue concerns several files.
  source_id INTEGER,
  -- ingest, or the stage that found it (align, timeline, ...).
  stage VARCHAR NOT NULL,
  -- Stable code of the issue.
  code VARCHAR NOT NULL,
  -- info, warning or error.
  severity VARCHAR NOT NULL,
  -- How many rows or bytes it concerns.
  count BIGINT NOT NULL,
  -- Events of the file that are not stored because of it.
  lost_events BIGINT NOT NULL,
  -- Place of the first one (event or byte number); NULL when it has no place.
  first_at VARCHAR,
  -- One sentence for a person.
  detail VARCHAR NOT NULL
);

-- Which state of the facts the derived schemas were built from.
CREATE TABLE meta.build (
  -- Version of traceforge that built them.
  traceforge_version VARCHAR NOT NULL,
  -- Hash over the ingested files' hashes.
  facts_hash VARCHAR NOT NULL
);

-- One row a Kineto (PyTorch profiler) file: what stands beside its events.
CREATE TABLE raw.kineto_file (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Schema version stated by the file.
  schema_version INTEGER,
  -- baseTimeNanoseconds, already added to every raw_start_ns; 0 when the file states none.
  base_time_ns BIGINT NOT NULL,
  -- Rank stated in distributedInfo.
  rank INTEGER,
  -- Number of ranks stated in distributedInfo.
  world_size INTEGER,
  -- Backend stated in distributedInfo, such as nccl or gloo.
  backend VARCHAR,
  -- NCCL version stated in distributedInfo.
  nccl_version VARCHAR,
  -- Host name stated by the file (PyTorch 2.13 and later).
  host_name VARCHAR,
  -- Name of the first device.
  device_name VARCHAR,
  -- Identifier of the profiling session.
  trace_id VARCHAR,
  -- Everything beside the events, as the JSON text of one object.
  metadata VARCHAR NOT NULL
);

-- One row a process group listed in distributedInfo.pg_config.
CREATE TABLE raw.kineto_process_group (
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

-- One row a (process, thread) pair of a Kineto file; a device stream is a thread of its device.
CREATE TABLE raw.kineto_track (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Small integer within the file.
  track_id INTEGER NOT NULL,
  -- pid as written.
  process VARCHAR,
  -- tid as written.
  thread VARCHAR,
  -- From the process_name metadata event.
  process_name VARCHAR,
  -- From the process_labels metadata event.
  process_labels VARCHAR,
  -- From the thread_name metadata event.
  thread_name VARCHAR
);

-- One row an event of a Kineto file, of any phase and category.
CREATE TABLE raw.kineto_event (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Position in the file's list of events, from 0.
  event_id BIGINT NOT NULL,
  -- Chrome trace phase: X complete, i instant, s/f/t flow, M metadata, C counter, B/E begin/end; NULL when absent.
  phase VARCHAR,
  -- Category as written; NULL when absent.
  category VARCHAR,
  -- Name as written.
  name VARCHAR,
  -- Joins raw.kineto_track.track_id within the source.
  track_id INTEGER,
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

-- One row an event that carries arguments of a collective.
CREATE TABLE raw.kineto_collective (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.kineto_event.event_id within the source.
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

-- Arguments of events as JSON text: of communication by default, of every event with --args all.
CREATE TABLE raw.kineto_argument (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.kineto_event.event_id within the source.
  event_id BIGINT NOT NULL,
  -- The JSON text of the event's args, as written.
  args VARCHAR NOT NULL
);
