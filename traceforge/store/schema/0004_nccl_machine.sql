-- What NCCL's logs and files beside them say of the machine, and what other tools measured of NCCL.

-- One row a NIC (or network interface) that a process found.
CREATE TABLE raw.nccl_nic (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Network it belongs to, such as IB, Socket, OFI; Bootstrap and OOB for the interfaces that carry control messages.
  network VARCHAR NOT NULL,
  -- Number by which connections name it; NULL where not printed.
  nic INTEGER,
  -- Device name, such as mlx5_0 or eth0; NULL where not printed.
  name VARCHAR,
  -- Port of the device.
  port INTEGER,
  -- Link layer: IB or RoCE; NULL otherwise.
  link VARCHAR,
  -- Rail (NCCL 2.30 and later).
  rail INTEGER,
  -- Plane (NCCL 2.30 and later).
  plane INTEGER,
  -- Speed as stated by the driver, bytes a second (written in Mbit/s).
  speed_bytes_per_s BIGINT,
  -- PCI address, such as 0000:3b:00.0.
  pci_address VARCHAR,
  -- Internet address of an interface, without port.
  address VARCHAR
);

-- One row a statement on GPU Direct RDMA.
CREATE TABLE raw.nccl_gdr (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Whether it is enabled (for this GPU and NIC, or at all).
  is_enabled BOOLEAN NOT NULL,
  -- GPU as printed: bus id in hex, or node of the topology; a device number where the statement is on DMA-BUF.
  gpu VARCHAR,
  -- NIC as printed: its number, or node of the topology.
  nic VARCHAR,
  -- Name of the NIC.
  nic_name VARCHAR,
  -- Why: distance 6 <= 7, DMA-BUF, ... ; the integers' meaning varies by NCCL version.
  reason VARCHAR
);

-- One row a statement on a plug-in or on the network chosen.
CREATE TABLE raw.nccl_plugin (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- NET, COLLNET, TUNER, PROFILER, ENV, GIN, RMA.
  kind VARCHAR NOT NULL,
  -- used, assigned, initialized, loaded, failed, not_found, symbol_missing, no_device, internal, provider, message, ...
  event VARCHAR NOT NULL,
  -- Plug-in, network, library or provider named; NULL where none is.
  name VARCHAR,
  -- The rest of the message; NULL where there is none.
  detail VARCHAR
);

-- One row a statement on where a process or thread may run.
CREATE TABLE raw.nccl_cpu_placement (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- affinity (of the process, near its GPU), or the proxy thread: Proxy Service, Proxy Progress, Proxy Service UDS.
  subject VARCHAR NOT NULL,
  -- GPU as printed.
  device INTEGER,
  -- CPU core a proxy thread runs on.
  cpu_core INTEGER,
  -- Cores as written: a mask in hex (until 2.27) or ranges; empty where NCCL found none near the GPU.
  cpu_set VARCHAR,
  -- Whether NCCL could keep the process near its GPU; NULL where it knows of no cores near it.
  is_near_gpu BOOLEAN
);

-- One row a statement on NVLink SHARP.
CREATE TABLE raw.nccl_nvls (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- support, communicator, head, buffer or group.
  event VARCHAR NOT NULL,
  -- CUDA device number.
  device INTEGER,
  -- support: whether multicast is available.
  is_available BOOLEAN,
  -- communicator, head: rank of the head.
  head_rank INTEGER,
  -- communicator: number of heads.
  head_count INTEGER,
  -- Bytes of the buffers or of the group.
  size_bytes BIGINT
);

-- One row a buffer registered with NCCL.
CREATE TABLE raw.nccl_registration (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- Address of the buffer.
  address UBIGINT,
  -- Its size.
  size_bytes BIGINT
);

-- One row an entry of NCCL's model: what it expects of an operation with an algorithm and a protocol; no measurement.
CREATE TABLE raw.nccl_tuning_model (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- Op.
  op VARCHAR NOT NULL,
  -- Algorithm, as in raw.nccl_tuning.
  algorithm VARCHAR NOT NULL,
  -- Protocol, as in raw.nccl_tuning.
  protocol VARCHAR NOT NULL,
  -- Expected latency, ns (written in us with 1 decimal).
  latency_ns BIGINT NOT NULL,
  -- Expected bandwidth (written in GB/s with 1 decimal); 0 where the combination is not used.
  bandwidth_bytes_per_s BIGINT NOT NULL
);

-- One row a topology: a GRAPH dump in a log, or a topology XML file.
CREATE TABLE raw.nccl_topology (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- record_id of the dump's first line; 0 in XML files.
  topology_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- log or xml.
  origin VARCHAR NOT NULL,
  -- Largest bandwidth of any link, as NCCL says.
  max_bandwidth_bytes_per_s BIGINT,
  -- Bandwidth of all links of a GPU, as NCCL says.
  total_bandwidth_bytes_per_s BIGINT
);

-- One row a node of a topology: cpu, pci, gpu, nic, net, nvs, ...
CREATE TABLE raw.nccl_topology_node (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_topology.topology_id within the source.
  topology_id BIGINT NOT NULL,
  -- Small integer within the topology, in order of appearance.
  node_id INTEGER NOT NULL,
  -- The node above it (PCI switch, CPU); NULL at the top.
  parent_node_id INTEGER,
  -- cpu, pci, gpu, nic, net, nvs, ...
  kind VARCHAR NOT NULL,
  -- Log: as printed, such as GPU/0-81000. XML: PCI address, device name, or number.
  name VARCHAR NOT NULL,
  -- PCI address of the node, or of the device it is part of; NULL where it has none.
  pci_address VARCHAR,
  -- Device number of a GPU or NIC.
  device INTEGER,
  -- Rank of a GPU.
  rank INTEGER,
  -- NUMA node.
  numa_node INTEGER,
  -- Bandwidth of the link to the node above (log), or speed of a NIC (XML), bytes a second.
  bandwidth_bytes_per_s BIGINT,
  -- Everything else that is said of it: XML attributes as JSON, or what stands in brackets in a log.
  detail VARCHAR
);

-- One row a link of a topology that leads not to the node above: NVLink, XGMI, C2C, between CPUs.
CREATE TABLE raw.nccl_topology_link (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_topology.topology_id within the source.
  topology_id BIGINT NOT NULL,
  -- Joins raw.nccl_topology_node.node_id of the topology.
  from_node_id INTEGER NOT NULL,
  -- Name of the other end, as raw.nccl_topology_node.name in logs; its PCI address in XML files.
  to_name VARCHAR NOT NULL,
  -- NVL, SYS, C2C, NET, ... as printed; XML: nvlink, xgmi, c2c, ...
  kind VARCHAR NOT NULL,
  -- Bandwidth (logs).
  bandwidth_bytes_per_s BIGINT,
  -- Number of links (XML).
  link_count INTEGER
);

-- One row a path between two nodes of a topology, as NCCL computed it.
CREATE TABLE raw.nccl_path (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_record.record_id within the source.
  record_id BIGINT NOT NULL,
  -- Joins raw.nccl_topology.topology_id within the source; NULL where the dump's head is missing.
  topology_id BIGINT,
  -- Node it starts at, such as GPU/0-81000.
  from_name VARCHAR NOT NULL,
  -- Node it ends at, such as NET/0-1.
  to_name VARCHAR NOT NULL,
  -- Links on the path.
  hop_count INTEGER NOT NULL,
  -- Bandwidth of its narrowest link.
  bandwidth_bytes_per_s BIGINT NOT NULL,
  -- LOC, NVL, NVB, C2C, PIX, PXB, PXN, P2C, PHB, SYS, NET, DIS.
  path_type VARCHAR NOT NULL
);

-- One row a communication pattern that NCCL's search chose: a GRAPH record, or a graph of a graph dump XML file.
CREATE TABLE raw.nccl_graph (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- record_id of its record in a log; id attribute in XML files.
  graph_id BIGINT NOT NULL,
  -- Joins raw.nccl_communicator.handle_id within the source.
  handle_id BIGINT,
  -- balanced_tree, split_tree, tree, ring, nvls, collnet_direct; the number as text where unknown.
  pattern VARCHAR NOT NULL,
  -- Whether a channel may enter and leave a node on different NICs: 0 no, 1 yes, 2 if it helps.
  cross_nic INTEGER,
  -- Channels found.
  channel_count INTEGER NOT NULL,
  -- Bandwidth of a channel inside the node.
  intra_bandwidth_bytes_per_s BIGINT NOT NULL,
  -- Bandwidth of a channel between nodes.
  inter_bandwidth_bytes_per_s BIGINT NOT NULL,
  -- Worst path type inside the node.
  intra_path_type VARCHAR NOT NULL,
  -- Worst path type to the NIC.
  inter_path_type VARCHAR NOT NULL,
  -- Whether all channels are alike.
  has_same_channels BOOLEAN
);

-- One row a channel of a pattern.
CREATE TABLE raw.nccl_graph_channel (
  -- Joins meta.source.source_id.
  source_id INTEGER NOT NULL,
  -- Joins raw.nccl_graph.graph_id within the source.
  graph_id BIGINT NOT NULL,
  -- Channel number.
  channel INTEGER NOT NULL,
  -- Nodes in order, such as NET/0-0, GPU/0-7000, ...; XML: net/0, gpu/0, ...
  nodes VARCHAR[] NOT NULL
);
