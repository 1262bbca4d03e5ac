-- What execution traces said: Chakra traces (sources `chakra`) and PyTorch's own (source `pytorch_et`).

-- One row a trace in a file; nearly every file holds one.
CREATE TABLE raw.chakra_file (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Which trace of the file, from 0; more than one where an observer was started twice or files were joined.
  part INTEGER NOT NULL,
  -- chakra_et (protobuf), jsonizer_json, feeder_json, pytorch_et, or pytorch_et_plus (with times and device nodes).
  format VARCHAR NOT NULL,
  -- Version of the execution trace schema as written, such as 1.1.1-chakra.0.0.4; NULL when not stated.
  schema_version VARCHAR,
  -- Version stated by a Chakra file's metadata, such as 0.0.4; NULL when not stated.
  wire_version VARCHAR,
  -- Whether the trace begins with metadata of its own.
  has_metadata BOOLEAN NOT NULL,
  -- Whether the file ends as its format ends; false where it was cut off, or its writer died.
  is_complete BOOLEAN NOT NULL,
  -- Nodes stored.
  node_count BIGINT NOT NULL,
  -- Global rank stated inside the file; NULL when not stated (most writers put it into the file's name).
  rank INTEGER,
  -- Process id of the recorded process; NULL when not stated.
  process_id BIGINT,
  -- Local wall time at the start of the recording, as written, without time zone; NULL when not stated.
  recorded_at VARCHAR,
  -- Start of the recording on the host's steady clock, ns (written in ms); comparable with nothing but raw_finish_ns.
  raw_start_ns BIGINT,
  -- End of the recording on the same clock, ns (written in ms); NULL when not stated.
  raw_finish_ns BIGINT,
  -- Unit in which the file writes starts and durations of nodes: us, or NULL where its format has none.
  time_unit VARCHAR,
  -- Everything beside the nodes, as the JSON text of one object.
  metadata VARCHAR NOT NULL
);

-- One row a node (an operation, an annotation, a kernel) of an execution trace.
CREATE TABLE raw.chakra_node (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.chakra_file.part within the source.
  part INTEGER NOT NULL,
  -- Position in the file's sequence of nodes, from 0; unique within the source. Says nothing about time.
  position BIGINT NOT NULL,
  -- Id as written, which edges refer to within a part (2^64 less where it is 2^63 or more); NULL where none can be read.
  node_id BIGINT,
  -- Name as written; NULL when absent or empty.
  name VARCHAR,
  -- Type as a Chakra file states it: COMP, COMM_COLL, COMM_SEND, COMM_RECV, MEM_LOAD, MEM_STORE, METADATA, INVALID, or
  -- a number without a name; NULL in PyTorch's own traces, which state none.
  node_type VARCHAR,
  -- Id of the calling node, as PyTorch's own traces state it; NULL in Chakra files (see raw.chakra_edge, kind control).
  parent_id BIGINT,
  -- Whether it ran on the host: as stated by Chakra files; by category in PyTorch's traces. NULL when not stated.
  is_cpu BOOLEAN,
  -- Category of a device node (kernel, gpu_memcpy, ...) in pytorch_et_plus; NULL otherwise.
  category VARCHAR,
  -- RecordFunction handle, which a Kineto trace repeats as "Record function id"; 0 means none.
  rf_id BIGINT,
  -- Id of the forward node that a backward node belongs to; 0 means none.
  fw_parent_id BIGINT,
  -- Autograd sequence number, which joins forward and backward; -1 means none.
  seq_id BIGINT,
  -- RecordFunction scope: 0 function, 1 backward function, 7 user annotation, and others as PyTorch numbers them.
  scope BIGINT,
  -- Thread number, counted from 1 by PyTorch (no system thread id).
  thread_id BIGINT,
  -- Thread number of the forward node; 0 means none.
  fw_thread_id BIGINT,
  -- Device stream; of device nodes (the converter writes 0 on host nodes, too).
  stream BIGINT,
  -- Start on the rank's own clock, ns (written in us); NULL when absent, as nearly always in Chakra files.
  raw_start_ns BIGINT,
  -- Duration, ns (written in us). Of a converted Chakra file: without callees on the host, whole on devices; of
  -- pytorch_et_plus: with callees. NULL when absent (protobuf does not tell 0 from absent).
  duration_ns BIGINT,
  -- Duration without callees, ns (written in us); only in pytorch_et_plus.
  exclusive_duration_ns BIGINT,
  -- Schema of the operator; NULL when absent or empty.
  op_schema VARCHAR,
  -- Such as triton; NULL when absent or empty.
  kernel_backend VARCHAR,
  -- File of a generated kernel; NULL when absent or empty.
  kernel_file VARCHAR,
  -- Number of operations of a computation, as generators state it for a roofline model (attribute num_ops).
  operation_count BIGINT,
  -- Bytes that a computation moves, as generators state it (attribute tensor_size).
  tensor_bytes BIGINT
);

-- One row a dependency or a call between two nodes, as written; either end may be missing among the nodes.
CREATE TABLE raw.chakra_edge (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.chakra_file.part within the source.
  part INTEGER NOT NULL,
  -- Node that comes first; joins raw.chakra_node.node_id within the part.
  from_node_id BIGINT NOT NULL,
  -- Node that depends on it, or is called by it; joins raw.chakra_node.node_id within the part.
  to_node_id BIGINT,
  -- data, control, parent (caller to callee), inter_thread, or sync (device to host).
  kind VARCHAR NOT NULL,
  -- Field of the file that states it: data_deps, ctrl_deps, parent, inter_thread_dep, sync_dep.
  origin VARCHAR NOT NULL
);

-- One row a node that communicates. NULL wherever the file does not state it.
CREATE TABLE raw.chakra_communication (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.chakra_file.part within the source.
  part INTEGER NOT NULL,
  -- Joins raw.chakra_node.position within the source.
  position BIGINT NOT NULL,
  -- Joins raw.chakra_node.node_id within the part.
  node_id BIGINT,
  -- What was read: attributes (of a Chakra node), record_param_comms (PyTorch's record of a call: one row a call), c10d
  -- (an operator, where no such record stands below it), or kernel (a device node that copies its host node's arguments).
  origin VARCHAR NOT NULL,
  -- Collective as written, such as allreduce or all_reduce; wait for the wait of an earlier call.
  collective_name VARCHAR,
  -- True for a wait, which moves nothing and joins its call by sequence; false for everything else.
  is_wait BOOLEAN NOT NULL,
  -- Sequence number of the call within its process, as the process group counts.
  sequence BIGINT,
  -- Name of the process group; joins raw.chakra_process_group.process_group_name within the part.
  process_group_name VARCHAR,
  -- Description of the process group, such as default_pg.
  process_group_description VARCHAR,
  -- Handle of the process group where no name is written (before 1.0.3); joins raw.chakra_process_group.handle.
  process_group_handle BIGINT,
  -- Rank of the process within the group.
  group_rank BIGINT,
  -- Number of ranks of the group.
  group_size BIGINT,
  -- First global rank of the group, where ranks are evenly spaced; -1 means not known.
  global_rank_start BIGINT,
  -- Distance between the global ranks of the group; -1 means not known.
  global_rank_stride BIGINT,
  -- Elements sent.
  in_elements BIGINT,
  -- Elements received.
  out_elements BIGINT,
  -- Bytes sent: as stated (attribute comm_size), else those of the input tensors.
  in_bytes BIGINT,
  -- Bytes received: those of the output tensors.
  out_bytes BIGINT,
  -- Element type as written, such as Float or c10::Half.
  dtype VARCHAR,
  -- Elements (of the first dimension) sent to each rank of the group; empty where all get the same.
  in_split_sizes BIGINT[],
  -- Elements (of the first dimension) received from each rank of the group; empty where all send the same.
  out_split_sizes BIGINT[],
  -- Rank that sends (attribute comm_src).
  source_rank BIGINT,
  -- Rank that receives (attribute comm_dst).
  destination_rank BIGINT,
  -- Tag of a message (attribute comm_tag).
  tag BIGINT,
  -- Priority of a message (attribute comm_priority).
  priority BIGINT,
  -- Whether the caller goes on before the communication ends.
  is_asynchronous BOOLEAN
);

-- One row a process group that a trace lists.
CREATE TABLE raw.chakra_process_group (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.chakra_file.part within the source.
  part INTEGER NOT NULL,
  -- Position of the node that lists it; joins raw.chakra_node.position within the source.
  position BIGINT NOT NULL,
  -- Id of the node that lists it.
  node_id BIGINT,
  -- Process group name, unique in a job.
  process_group_name VARCHAR,
  -- Description, such as default_pg or mesh_dp.
  description VARCHAR,
  -- Backend of the group, such as cpu:gloo,cuda:nccl.
  backend VARCHAR,
  -- Handle of the group (backend_id), which old records of calls refer to.
  handle BIGINT,
  -- Number of member ranks.
  size BIGINT,
  -- Global ranks of the members; an empty list stands for all ranks of the job.
  ranks BIGINT[]
);

-- One row a tensor among the inputs and outputs of a node: of PyTorch's products of matrices by default, of every node
-- with --args all.
CREATE TABLE raw.chakra_tensor (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.chakra_file.part within the source.
  part INTEGER NOT NULL,
  -- Joins raw.chakra_node.position within the source.
  position BIGINT NOT NULL,
  -- Joins raw.chakra_node.node_id within the part.
  node_id BIGINT,
  -- input or output.
  direction VARCHAR NOT NULL,
  -- Which input or output of the node, from 0.
  argument BIGINT NOT NULL,
  -- Place in the list that the argument is, from 0; NULL where the argument is the tensor itself.
  element BIGINT,
  -- Identity of the tensor in its process.
  tensor_id BIGINT,
  -- Identity of its memory: tensors that share it depend on one another; 0 means none.
  storage_id BIGINT,
  -- Where it begins in its memory, elements.
  storage_position BIGINT,
  -- Number of elements.
  element_count BIGINT,
  -- Size of an element, bytes.
  element_bytes BIGINT,
  -- Element type as written, such as float or c10::Half.
  dtype VARCHAR,
  -- Device as written, such as cuda:0.
  device VARCHAR,
  -- Sizes of its dimensions.
  shape BIGINT[],
  -- Elements from one to the next in each dimension; NULL before schema 1.1.1.
  strides BIGINT[]
);

-- One row an attribute of a node that has no column: of communication by default, of every node with --args all.
CREATE TABLE raw.chakra_attribute (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.chakra_file.part within the source.
  part INTEGER NOT NULL,
  -- Joins raw.chakra_node.position within the source.
  position BIGINT NOT NULL,
  -- Joins raw.chakra_node.node_id within the part.
  node_id BIGINT,
  -- Name as written.
  name VARCHAR NOT NULL,
  -- Value as JSON text.
  value VARCHAR
);
