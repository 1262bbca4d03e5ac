-- What stands beside NCCL's own log lines: nccl-tests tables, watchdog lines, Inspector files, flight recorder dumps.

-- One row a rank of an nccl-tests run.
CREATE TABLE raw.nccl_bench_rank (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Rank of the run.
  rank INTEGER NOT NULL,
  -- Group (where communicators are split); NULL in old versions.
  bench_group INTEGER,
  -- Process id.
  pid BIGINT NOT NULL,
  -- Host name, without its domain.
  host VARCHAR NOT NULL,
  -- CUDA device number.
  device INTEGER NOT NULL,
  -- PCI bus as printed, such as 0000:06:00 or 0x06.
  bus VARCHAR NOT NULL,
  -- Name of the device.
  device_name VARCHAR NOT NULL
);

-- One row a measurement of nccl-tests.
CREATE TABLE raw.nccl_bench (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source; in-place and out-of-place results share a record.
  record_id BIGINT NOT NULL,
  -- Name of the test, such as all_reduce_perf; NULL where the output does not say it.
  test VARCHAR,
  -- Message size.
  size_bytes BIGINT NOT NULL,
  -- Elements.
  element_count BIGINT NOT NULL,
  -- Element type as printed, such as float.
  datatype VARCHAR NOT NULL,
  -- Reduction as printed; NULL where none is.
  reduction VARCHAR,
  -- Root rank, -1 where the operation has none; NULL in old versions.
  root INTEGER,
  -- Whether send and receive buffer are the same.
  is_in_place BOOLEAN NOT NULL,
  -- Mean time of the operation, ns (written in us).
  duration_ns BIGINT NOT NULL,
  -- size_bytes over the duration.
  algorithm_bandwidth_bytes_per_s BIGINT NOT NULL,
  -- The same, scaled to what the busiest link carries.
  bus_bandwidth_bytes_per_s BIGINT NOT NULL,
  -- Wrong elements, or the largest error in old versions, as printed; N/A where not checked.
  wrong VARCHAR
);

-- One row a statement of PyTorch's watchdog on a collective that did not end in time.
CREATE TABLE raw.nccl_watchdog (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- timeout (one collective) or progress (how far the rank got).
  event VARCHAR NOT NULL,
  -- Global rank, or rank in the process group where the line names one.
  rank INTEGER,
  -- Number of the process group; NULL where not printed.
  process_group_id INTEGER,
  -- Process group's unique name and its description; NULL where not printed.
  process_group_name VARCHAR,
  -- Sequence number of the collective.
  sequence BIGINT,
  -- Operation, such as ALLREDUCE.
  op VARCHAR,
  -- Elements sent.
  in_elements BIGINT,
  -- Elements received.
  out_elements BIGINT,
  -- Time limit, ns (written in ms).
  timeout_ns BIGINT,
  -- Age of the collective when it was given up, ns (written in ms).
  age_ns BIGINT,
  -- progress: last sequence number this rank enqueued; the same as completed where it never entered the next one.
  last_enqueued BIGINT,
  -- progress: last one that started on the device; NULL where not printed.
  last_started BIGINT,
  -- progress: last one that ended.
  last_completed BIGINT
);

-- One row an event of RCCL's kernel trace (RCCL_KERNEL_COLL_TRACE_ENABLE=1), on the GPU's clock.
CREATE TABLE raw.nccl_kernel_event (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source; NULL where the line names none.
  handle_id BIGINT,
  -- KL launch, CL next operation of the kernel, KE end, CE end of the operation, ... as printed.
  event VARCHAR NOT NULL,
  -- Rank in the communicator.
  rank INTEGER NOT NULL,
  -- Block of the kernel.
  block INTEGER NOT NULL,
  -- Channel; NULL in old versions.
  channel INTEGER,
  -- Operation counts as printed in hex, send and receive of a point-to-point kernel apart.
  op_count VARCHAR NOT NULL,
  -- Time on the GPU's clock, ns (written with 6 decimals of a second).
  device_time_ns BIGINT NOT NULL,
  -- Device function; NULL where not printed.
  function VARCHAR,
  -- PCI address of the GPU.
  pci_address VARCHAR,
  -- Ranks of the communicator.
  rank_count INTEGER
);

-- One row an operation measured by the NCCL Inspector plug-in.
CREATE TABLE raw.nccl_inspector_operation (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Line of the file, from 1.
  line BIGINT NOT NULL,
  -- commHash, as raw.nccl_communicator.comm_hash.
  comm_hash VARCHAR,
  -- Rank in the communicator.
  rank INTEGER,
  -- Ranks of the communicator.
  rank_count INTEGER,
  -- Nodes it spans.
  node_count INTEGER,
  -- Host name.
  host VARCHAR,
  -- Process id.
  pid BIGINT,
  -- When the record was written, ns since 1970 (written in us); later than the operation.
  raw_dump_time_ns BIGINT,
  -- Op, such as AllReduce, Send.
  op VARCHAR NOT NULL,
  -- Number of the operation in its communicator.
  sequence BIGINT,
  -- Peer of a send or receive.
  peer INTEGER,
  -- Message size.
  size_bytes BIGINT,
  -- Execution time, ns (written in us).
  duration_ns BIGINT,
  -- kernel_gpu (GPU clock), kernel_cpu or collective_cpu (host clock).
  timing_source VARCHAR,
  -- As stated.
  algorithm_bandwidth_bytes_per_s BIGINT,
  -- As stated.
  bus_bandwidth_bytes_per_s BIGINT,
  -- Earliest start of its kernel on any channel, ns since 1970 (written in us); verbose files only.
  raw_start_ns BIGINT,
  -- Latest end of its kernel on any channel, ns since 1970 (written in us); verbose files only.
  raw_end_ns BIGINT,
  -- Channels its kernel ran on; verbose files only.
  channel_count INTEGER
);

-- One row a process group of a PyTorch flight recorder dump.
CREATE TABLE raw.flight_recorder_group (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Process group name.
  process_group_name VARCHAR NOT NULL,
  -- Description, such as default_pg.
  description VARCHAR,
  -- Global ranks, as the JSON text of a list; NULL where not stated.
  ranks VARCHAR,
  -- Last sequence number enqueued; NULL where not stated.
  last_enqueued BIGINT,
  -- Last one that started.
  last_started BIGINT,
  -- Last one that ended.
  last_completed BIGINT
);

-- One row a collective, send or receive in a PyTorch flight recorder dump.
CREATE TABLE raw.flight_recorder_entry (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Position in the dump, from 0.
  entry_id BIGINT NOT NULL,
  -- Number PyTorch gave the entry.
  record_number BIGINT,
  -- Number of the process group in the process.
  process_group_id INTEGER,
  -- Joins raw.flight_recorder_group.process_group_name within the source.
  process_group_name VARCHAR,
  -- Sequence number among the group's collectives.
  collective_sequence BIGINT,
  -- Sequence number among the group's sends and receives.
  p2p_sequence BIGINT,
  -- Name for the profiler, such as nccl:all_reduce.
  name VARCHAR,
  -- Whether it is a send or receive.
  is_p2p BOOLEAN,
  -- scheduled, started or completed, as PyTorch knew when it wrote the dump.
  state VARCHAR,
  -- When the host called it, ns since 1970.
  raw_created_ns BIGINT,
  -- When the watchdog noticed that it had started: later than the truth.
  raw_noticed_start_ns BIGINT,
  -- When the watchdog noticed that it had ended: later than the truth.
  raw_noticed_end_ns BIGINT,
  -- Duration on the device, ns (written in ms); only with TORCH_NCCL_ENABLE_TIMING and of retired entries.
  duration_ns BIGINT,
  -- Time limit, ns (written in ms).
  timeout_ns BIGINT,
  -- Shapes sent, as JSON text.
  in_shapes VARCHAR,
  -- Shapes received, as JSON text.
  out_shapes VARCHAR,
  -- Element types sent, as JSON text.
  in_dtypes VARCHAR,
  -- Element types received, as JSON text.
  out_dtypes VARCHAR,
  -- Whether the recorder had let go of it.
  is_retired BOOLEAN,
  -- Innermost frames of the call, as text: function at file:line, outermost last; NULL where not recorded.
  stack VARCHAR
);
