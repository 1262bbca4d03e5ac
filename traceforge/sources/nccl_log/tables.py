"""Columns of raw.nccl_*. In: rows and arrays as the reader makes them. Out: batches of bounded size.

Idea: one place states every column with its type; rows gather in one list a column, arrays as whole frames.
Not handled: `source_id`, which the store adds; the order of rows within a table (sort by record_id).
"""

from collections.abc import Callable, Mapping

import polars as pl

from traceforge.records import Batch

TYPES: Mapping[str, pl.DataType] = {
    "i32": pl.Int32(),
    "i64": pl.Int64(),
    "u64": pl.UInt64(),
    "bool": pl.Boolean(),
    "str": pl.String(),
    "i32s": pl.List(pl.Int32()),
    "strs": pl.List(pl.String()),
}

# By table: name and type of each column; `!` where it is never NULL.
_COLUMNS = {
    "file": "flavour str, prefix_style str!, stamp_format str, stamp_resolution_ns i64, line_count i64!,"
    " record_count i64!, understood_count i64!, torn_count i64!",
    "process": "process_id i32!, host str!, pid i64!, launcher_rank i32, record_count i64!",
    "record": "record_id i64!, line i64!, process_id i32, tid i64, device i32, level str, rule str!, raw_time_ns i64",
    "version": "record_id i64!, component str!, version str!",
    "communicator": "handle_id i64!, process_id i32, comm_pointer u64, comm_hash str, rank i32, rank_count i32,"
    " node_count i32, local_rank i32, local_rank_count i32, device i32, nvml_device i32, pci_address str, api str,"
    " parent_pointer u64, split_color i32, split_key i32, channel_count i32, collnet_channel_count i32,"
    " nvls_channel_count i32, p2p_channel_count i32, p2p_channels_per_peer i32, p2p_chunk_bytes i64,"
    " start_record_id i64, complete_record_id i64, close_record_id i64, close_reason str",
    "collective_call": "record_id i64!, handle_id i64, stated_by str!, op str!, op_count i64, element_count i64,"
    " datatype str, size_bytes i64, reduction str, root i32, rank_count i32, stream u64, send_address u64,"
    " receive_address u64, task i32, global_rank i32",
    "link": "record_id i64!, handle_id i64, handle_origin str, channel i32!, connection_index i32, source_rank i32,"
    " source_device str, target_rank i32, target_device str, direction str, transport str!, mode str, network str,"
    " nic i32, proxy_rank i32, is_gdr bool, options str",
    "ring_order": "record_id i64!, handle_id i64, channel i32!, channel_count i32!, ranks i32s!",
    "ring_member": "record_id i64!, handle_id i64, channel i32!, rank i32!, previous_rank i32!, next_rank i32!",
    "tree": "record_id i64!, handle_id i64, channel i32!, rank i32!, parent_rank i32, child_ranks i32s!",
    "timing": "record_id i64!, handle_id i64, scope str!, phase str!, duration_ns i64!",
    "tuning": "record_id i64!, op str, size_bytes i64!, algorithm str!, protocol str, channel_low i32,"
    " channel_high i32, predicted_ns i64, kernel str, channel_count i32, thread_count i32",
    "environment": "record_id i64!, name str!, value str!, origin str!",
    "event": "record_id i64!, kind str!, place str, text str!, code i32, opcode str, vendor_error i32, peer str,"
    " nic_name str, local_gid str, remote_gid str",
    "unparsed": "template str!, level str, record_count i64!, first_record_id i64!, example str!",
    "nic": "record_id i64!, network str!, nic i32, name str, port i32, link str, rail i32, plane i32,"
    " speed_bytes_per_s i64, pci_address str, address str",
    "gdr": "record_id i64!, is_enabled bool!, gpu str, nic str, nic_name str, reason str",
    "plugin": "record_id i64!, kind str!, event str!, name str, detail str",
    "cpu_placement": "record_id i64!, subject str!, device i32, cpu_core i32, cpu_set str, is_near_gpu bool",
    "nvls": "record_id i64!, handle_id i64, event str!, device i32, is_available bool, head_rank i32, head_count i32,"
    " size_bytes i64",
    "registration": "record_id i64!, handle_id i64, address u64, size_bytes i64",
    "tuning_model": "record_id i64!, handle_id i64, op str!, algorithm str!, protocol str!, latency_ns i64!,"
    " bandwidth_bytes_per_s i64!",
    "topology": "topology_id i64!, handle_id i64, origin str!, max_bandwidth_bytes_per_s i64,"
    " total_bandwidth_bytes_per_s i64",
    "topology_node": "topology_id i64!, node_id i32!, parent_node_id i32, kind str!, name str!, pci_address str,"
    " device i32, rank i32, numa_node i32, bandwidth_bytes_per_s i64, detail str",
    "topology_link": "topology_id i64!, from_node_id i32!, to_name str!, kind str!, bandwidth_bytes_per_s i64,"
    " link_count i32",
    "path": "record_id i64!, topology_id i64, from_name str!, to_name str!, hop_count i32!, bandwidth_bytes_per_s i64!,"
    " path_type str!",
    "graph": "graph_id i64!, handle_id i64, pattern str!, cross_nic i32, channel_count i32!,"
    " intra_bandwidth_bytes_per_s i64!, inter_bandwidth_bytes_per_s i64!, intra_path_type str!, inter_path_type str!,"
    " has_same_channels bool",
    "graph_channel": "graph_id i64!, channel i32!, nodes strs!",
    "bench_rank": "record_id i64!, rank i32!, bench_group i32, pid i64!, host str!, device i32!, bus str!,"
    " device_name str!",
    "bench": "record_id i64!, test str, size_bytes i64!, element_count i64!, datatype str!, reduction str, root i32,"
    " is_in_place bool!, duration_ns i64!, algorithm_bandwidth_bytes_per_s i64!, bus_bandwidth_bytes_per_s i64!,"
    " wrong str",
    "watchdog": "record_id i64!, event str!, rank i32, process_group_id i32, process_group_name str, sequence i64,"
    " op str, in_elements i64, out_elements i64, timeout_ns i64, age_ns i64, last_enqueued i64, last_started i64,"
    " last_completed i64",
    "exception": "record_id i64!, rank i32, place str, meaning str!, result str, nccl_version str, text str",
    "kernel_event": "record_id i64!, handle_id i64, event str!, rank i32!, block i32!, channel i32, op_count str!,"
    " device_time_ns i64!, function str, pci_address str, rank_count i32",
}


def _parse(columns: str) -> dict[str, str]:
    pairs = (column.split() for column in columns.split(","))
    return dict(pairs)


_PARSED = {table: _parse(columns) for table, columns in _COLUMNS.items()}

COLUMNS: Mapping[str, Mapping[str, str]] = {
    table: {name: kind.removesuffix("!") for name, kind in columns.items()} for table, columns in _PARSED.items()
}
"""Type of every column by table (without `raw.nccl_`) and column name."""

REQUIRED: Mapping[str, tuple[str, ...]] = {
    table: tuple(name for name, kind in columns.items() if kind.endswith("!")) for table, columns in _PARSED.items()
}
"""Columns that are never NULL, by table."""

SCHEMAS: Mapping[str, Mapping[str, pl.DataType]] = {
    table: {name: TYPES[kind] for name, kind in columns.items()} for table, columns in COLUMNS.items()
}


class Tables:
    """Gathers rows and frames of all tables and hands them on in batches.

    Args:
        emit: takes each batch.
        batch_rows: rows of one table that make a batch.
    """

    def __init__(self, emit: Callable[[Batch], None], batch_rows: int) -> None:
        self._emit = emit
        self._batch_rows = batch_rows
        self._lists: dict[str, dict[str, list[object]]] = {}
        self._frames: dict[str, list[pl.DataFrame]] = {}
        self._waiting: dict[str, int] = {}

    def add(self, table: str, row: Mapping[str, object]) -> bool:
        """Add a row; columns that are missing become NULL.

        Returns:
            False, and nothing is added, where a column that is never NULL has no value.
        """
        get = row.get
        for name in REQUIRED[table]:
            if get(name) is None:
                return False
        lists = self._lists.get(table)
        if lists is None:
            lists = self._lists[table] = {name: [] for name in COLUMNS[table]}
        for name, values in lists.items():
            values.append(get(name))
        self._waiting[table] = self._waiting.get(table, 0) + 1
        return True

    def add_frame(self, table: str, frame: pl.DataFrame) -> None:
        """Add many rows; columns that are missing become NULL."""
        self._frames.setdefault(table, []).append(frame)
        self._waiting[table] = self._waiting.get(table, 0) + frame.height

    def flush_full(self) -> None:
        """Hand on the tables that have gathered a batch."""
        for table, count in self._waiting.items():
            if count >= self._batch_rows:
                self._flush(table)

    def flush(self) -> None:
        """Hand on everything."""
        for table in list(self._waiting):
            self._flush(table)

    def _flush(self, table: str) -> None:
        schema = SCHEMAS[table]
        frames = [_complete(frame, schema) for frame in self._frames.pop(table, [])]
        lists = self._lists.pop(table, None)
        if lists:
            frames.append(pl.DataFrame(lists, schema=schema))
        if frames:
            self._emit(Batch(f"raw.nccl_{table}", pl.concat(frames) if len(frames) > 1 else frames[0]))
        self._waiting[table] = 0


def _complete(frame: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    missing = [pl.lit(None, dtype=kind).alias(name) for name, kind in schema.items() if name not in frame.columns]
    return frame.with_columns(missing).select(
        pl.col(name).cast(kind) if frame.schema.get(name, kind) != kind else pl.col(name)
        for name, kind in schema.items()
    )
