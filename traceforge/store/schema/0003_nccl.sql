-- What NCCL and RCCL debug logs said (source nccl_log): records, communicators, calls, connections, configuration.

-- One row a debug log.
CREATE TABLE raw.nccl_file (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- nccl or rccl, as the first banner says; NULL where no banner is in the log.
  flavour VARCHAR,
  -- What stands before host:pid:tid on most records: none, mpirun_tag, srun_label, torchrun_tag, ray_actor, ..., other.
  prefix_style VARCHAR NOT NULL,
  -- Form of the time stamps, in strftime letters (%6f: six digits of a second); NULL where records carry none.
  stamp_format VARCHAR,
  -- Smallest step the time stamps can show, ns; NULL where records carry none.
  stamp_resolution_ns BIGINT,
  -- Lines of the file.
  line_count BIGINT NOT NULL,
  -- Rows of raw.nccl_record.
  record_count BIGINT NOT NULL,
  -- Of these, how many a rule of the grammar reads; the rest is counted by template in raw.nccl_unparsed.
  understood_count BIGINT NOT NULL,
  -- Records whose line holds another record too, or whose host name was glued to other text.
  torn_count BIGINT NOT NULL
);

-- One row a process (host and pid) that wrote records.
CREATE TABLE raw.nccl_process (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Small integer within the source, in order of appearance.
  process_id INTEGER NOT NULL,
  -- Host name as printed, with its domain.
  host VARCHAR NOT NULL,
  -- Operating system's process id.
  pid BIGINT NOT NULL,
  -- Rank in the launcher's prefix (mpirun, srun, torchrun [rankN]) on most of its records; NULL where there is none.
  launcher_rank INTEGER,
  -- Records of the process.
  record_count BIGINT NOT NULL
);

-- One row a record: an NCCL line, a banner, a row of an nccl-tests table or a watchdog line among them.
CREATE TABLE raw.nccl_record (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Position among the file's records, from 0; the other raw.nccl_* tables join on it.
  record_id BIGINT NOT NULL,
  -- Line of the file, from 1; torn lines hold several records.
  line BIGINT NOT NULL,
  -- Joins raw.nccl_process.process_id within the source; NULL where the record names no process.
  process_id INTEGER,
  -- Operating system's thread id; equals the pid on the main thread.
  tid BIGINT,
  -- CUDA device that was current on the calling thread; not a rank.
  device INTEGER,
  -- INFO, WARN, TRACE or CALL; NULL on lines that NCCL did not write.
  level VARCHAR,
  -- Rule of the grammar that reads it, such as collective_call; unparsed where none does.
  rule VARCHAR NOT NULL,
  -- Time stamp, ns since 1970 in the host's local time (UTC where a zone is printed), since midnight where it has no
  -- date, and since the start of 1970 where it has no year; NULL without a stamp.
  raw_time_ns BIGINT
);

-- One row a version that a record states.
CREATE TABLE raw.nccl_version (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- nccl, rccl, nccl_git, cuda, hip, rocm, cuda_driver, aws_ofi_nccl, libfabric.
  component VARCHAR NOT NULL,
  -- Version as written, such as 2.27.5.
  version VARCHAR NOT NULL
);

-- One row a communicator object: one rank's side of a communicator, from init to destroy.
CREATE TABLE raw.nccl_communicator (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- record_id of the first record about it; the same pointer after a destroy is another handle.
  handle_id BIGINT NOT NULL,
  -- Joins raw.nccl_process.process_id within the source.
  process_id INTEGER,
  -- Address of the object, unique in its process while it lives; NULL where no record printed it.
  comm_pointer UBIGINT,
  -- commId (commHash), the same on all ranks of the communicator, as 0x and hex digits; NULL before NCCL 2.18.
  comm_hash VARCHAR,
  -- Rank in this communicator.
  rank INTEGER,
  -- Ranks of this communicator.
  rank_count INTEGER,
  -- Nodes it spans (NCCL 2.20 and later).
  node_count INTEGER,
  -- Rank among those on its node (NCCL 2.20 and later).
  local_rank INTEGER,
  -- Ranks on its node (NCCL 2.20 and later).
  local_rank_count INTEGER,
  -- CUDA device number in its process.
  device INTEGER,
  -- NVML device number on its host, which CUDA_VISIBLE_DEVICES does not change.
  nvml_device INTEGER,
  -- PCI address of the GPU, such as 0000:b9:00.0.
  pci_address VARCHAR,
  -- API function that made it, such as ncclCommInitRank (NCCL 2.21 and later).
  api VARCHAR,
  -- comm_pointer of the communicator it was split from.
  parent_pointer UBIGINT,
  -- Color given to the split.
  split_color INTEGER,
  -- Key given to the split.
  split_key INTEGER,
  -- Channels for collectives.
  channel_count INTEGER,
  -- Channels for collectives through the network's reduction.
  collnet_channel_count INTEGER,
  -- Channels for NVLink SHARP.
  nvls_channel_count INTEGER,
  -- Channels for send and receive.
  p2p_channel_count INTEGER,
  -- Channels for send and receive a peer.
  p2p_channels_per_peer INTEGER,
  -- Chunk size of send and receive.
  p2p_chunk_bytes BIGINT,
  -- record_id of its Init START; NULL before NCCL 2.18, and where the log begins later.
  start_record_id BIGINT,
  -- record_id of its Init COMPLETE, torn or whole, or of its timings, which follow it; NULL where none is logged.
  complete_record_id BIGINT,
  -- record_id of its Destroy, Abort or Revoke COMPLETE; NULL where there is none.
  close_record_id BIGINT,
  -- Destroy, Abort, Revoke; reused where its pointer was given to another communicator without a word.
  close_reason VARCHAR
);

-- One row a call of a collective, a send or a receive. Its order within a handle is its sequence number.
CREATE TABLE raw.nccl_collective_call (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- coll (subsystem COLL) or call (subsystem CALL); where a log has both, each call is stated twice.
  stated_by VARCHAR NOT NULL,
  -- AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, Send, Recv, ...
  op VARCHAR NOT NULL,
  -- opCount as written; counts launched plans, no sequence number, and 0 for ever on one node since NCCL 2.27.
  op_count BIGINT,
  -- Elements: sent a rank for AllGather, received a rank for ReduceScatter.
  element_count BIGINT,
  -- Element type, such as bfloat16; the number as text where unknown.
  datatype VARCHAR,
  -- element_count times the size of an element; NULL where the type is unknown.
  size_bytes BIGINT,
  -- sum, prod, max, min, avg or user; meaningless for ops without a reduction, which print sum.
  reduction VARCHAR,
  -- Root rank; the peer of a Send or Recv.
  root INTEGER,
  -- Ranks of the communicator, as this line states them.
  rank_count INTEGER,
  -- Address of the stream; 0 is the default stream.
  stream UBIGINT,
  -- Address of the send buffer; 0 where there is none.
  send_address UBIGINT,
  -- Address of the receive buffer; 0 where there is none.
  receive_address UBIGINT,
  -- RCCL: number of the task in its group.
  task INTEGER,
  -- RCCL: global rank of the caller.
  global_rank INTEGER
);

-- One row a connection between two ranks on a channel, as one of its ends printed it.
CREATE TABLE raw.nccl_link (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source; NULL where the record does not tell.
  handle_id BIGINT,
  -- How the handle is known: stated, init (the record stands inside its init) or only (no other fits in its process).
  handle_origin VARCHAR,
  -- Channel number.
  channel INTEGER NOT NULL,
  -- 0 ring and tree, 1 send and receive; NULL where not printed.
  connection_index INTEGER,
  -- Rank the data comes from.
  source_rank INTEGER,
  -- Its GPU as printed: PCI bus id in hex (until 2.17, and RCCL) or NVML device number.
  source_device VARCHAR,
  -- Rank the data goes to; NULL for CollNet.
  target_rank INTEGER,
  -- Its GPU as printed.
  target_device VARCHAR,
  -- send or receive, for NET and COLLNET; NULL otherwise, where the source rank prints.
  direction VARCHAR,
  -- P2P, SHM, NET or COLLNET.
  transport VARCHAR NOT NULL,
  -- P2P: IPC, CUMEM, MNNVL, direct pointer, indirect/...; SHM: direct/direct, ...; NULL for NET.
  mode VARCHAR,
  -- Network, such as IB, Socket, AWS Libfabric.
  network VARCHAR,
  -- Number of the NIC; joins raw.nccl_nic.nic of the same process and network.
  nic INTEGER,
  -- Rank whose proxy drives the NIC (PXN); NULL where the rank does it itself.
  proxy_rank INTEGER,
  -- NET and COLLNET: whether GPU Direct RDMA is used; NULL otherwise.
  is_gdr BOOLEAN,
  -- Further words, separated by a blank: read, CE, Shared, PCI.
  options VARCHAR
);

-- One row a ring as printed in order, from rank 0 on.
CREATE TABLE raw.nccl_ring_order (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- Channel number.
  channel INTEGER NOT NULL,
  -- Number of channels, as printed beside it.
  channel_count INTEGER NOT NULL,
  -- Ranks in order; NCCL stops after about 20, without a mark before 2.23.
  ranks INTEGER[] NOT NULL
);

-- One row a rank's place in a ring.
CREATE TABLE raw.nccl_ring_member (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- Channel number.
  channel INTEGER NOT NULL,
  -- The rank.
  rank INTEGER NOT NULL,
  -- Rank it receives from.
  previous_rank INTEGER NOT NULL,
  -- Rank it sends to.
  next_rank INTEGER NOT NULL
);

-- One row a rank's place in a tree.
CREATE TABLE raw.nccl_tree (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- Channel number.
  channel INTEGER NOT NULL,
  -- The rank.
  rank INTEGER NOT NULL,
  -- Rank above; NULL at the root.
  parent_rank INTEGER,
  -- Ranks below.
  child_ranks INTEGER[] NOT NULL
);

-- One row an init phase: how long it took on the host.
CREATE TABLE raw.nccl_timing (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- init, bootstrap, or what else was timed, such as P2P connect.
  scope VARCHAR NOT NULL,
  -- total, or one of its parts, such as kernels, alloc, topo, graphs, connections.
  phase VARCHAR NOT NULL,
  -- Duration, ns (written in seconds, init with 2 decimals).
  duration_ns BIGINT NOT NULL
);

-- One row an algorithm choice: what rank 0 of a communicator used for a call (which one: same thread, size and order).
CREATE TABLE raw.nccl_tuning (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Op; NULL until NCCL 2.22, which does not print it.
  op VARCHAR,
  -- Size as printed: count times element size since 2.24; the algorithm's total bytes before.
  size_bytes BIGINT NOT NULL,
  -- tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat; symmetric, copy_engine, hierarchical_copy_engine.
  algorithm VARCHAR NOT NULL,
  -- ll, ll128 or simple; NULL where it has none.
  protocol VARCHAR,
  -- First channel used (2.24 and later).
  channel_low INTEGER,
  -- Last channel used (2.24 and later).
  channel_high INTEGER,
  -- Time NCCL's model predicts, ns (until 2.23); no measurement.
  predicted_ns BIGINT,
  -- Kernel or copy function (2.27 and later).
  kernel VARCHAR,
  -- Number of channels, where printed beside the kernel.
  channel_count INTEGER,
  -- Threads a block, where printed beside the kernel.
  thread_count INTEGER
);

-- One row a setting that a process found in its environment.
CREATE TABLE raw.nccl_environment (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Name, such as NCCL_IB_HCA.
  name VARCHAR NOT NULL,
  -- Value as written, without the full stop NCCL puts behind integers.
  value VARCHAR NOT NULL,
  -- environment, or what else set it: a configuration file, plugin (by a network plugin), adopted (NCCL: `set to`).
  origin VARCHAR NOT NULL
);

-- One row a warning, an error, or a message that explains one.
CREATE TABLE raw.nccl_event (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- completion_error, async_event, connection_closed, connect_retry, call_failed, cuda_failure, unwinding,
  -- p2p_disabled, ... and warning for a WARN that is none of these.
  kind VARCHAR NOT NULL,
  -- NCCL's own file and line, such as transport/net_ib.cc:2453; NULL where not printed.
  place VARCHAR,
  -- The message.
  text VARCHAR NOT NULL,
  -- Number in the message: completion status, ncclResult of an unwinding, CUDA error, attempt of a retry.
  code INTEGER,
  -- Completion: opcode as printed (2.20 to 2.27 print garbage on errors).
  opcode VARCHAR,
  -- Completion: vendor error (status 12 with 129: retry timeout; 4 with 81: local protection; 5: follow-up).
  vendor_error INTEGER,
  -- Completion: address of the peer, without its port.
  peer VARCHAR,
  -- NIC named in the message, such as mlx5_1.
  nic_name VARCHAR,
  -- Completion: GID of this end.
  local_gid VARCHAR,
  -- Completion: GID of the peer.
  remote_gid VARCHAR
);

-- One row a kind of message that no rule reads; numbers and addresses are replaced by #.
CREATE TABLE raw.nccl_unparsed (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- The message with # for numbers; the last template gathers the rest where a file has too many.
  template VARCHAR NOT NULL,
  -- Level of its first record.
  level VARCHAR,
  -- Records of the kind.
  record_count BIGINT NOT NULL,
  -- Joins raw.nccl_record.record_id within the source: the first of them.
  first_record_id BIGINT NOT NULL,
  -- Message of the first one.
  example VARCHAR NOT NULL
);
