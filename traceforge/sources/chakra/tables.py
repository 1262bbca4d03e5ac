"""Rows of raw.chakra_* as frames. In: columns by name. Out: frames with all columns of their table.

Idea: one place states the columns and types that this source hands to the store; what a format does not say is NULL.
Not handled: `source_id`, which the store adds.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

ABSENT = -(2**63)
"""Stands for a missing integer in arrays; becomes NULL here."""

Column = npt.NDArray[np.int64] | Sequence[object] | pl.Series
_KEY = {"part": pl.Int32(), "position": pl.Int64(), "node_id": pl.Int64()}
SCHEMAS: dict[str, dict[str, pl.DataType]] = {
    "raw.chakra_file": {
        "part": pl.Int32(),
        "format": pl.String(),
        "schema_version": pl.String(),
        "wire_version": pl.String(),
        "has_metadata": pl.Boolean(),
        "is_complete": pl.Boolean(),
        "node_count": pl.Int64(),
        "rank": pl.Int32(),
        "process_id": pl.Int64(),
        "recorded_at": pl.String(),
        "raw_start_ns": pl.Int64(),
        "raw_finish_ns": pl.Int64(),
        "time_unit": pl.String(),
        "metadata": pl.String(),
    },
    "raw.chakra_node": {
        **_KEY,
        "name": pl.String(),
        "node_type": pl.String(),
        "parent_id": pl.Int64(),
        "is_cpu": pl.Boolean(),
        "category": pl.String(),
        "rf_id": pl.Int64(),
        "fw_parent_id": pl.Int64(),
        "seq_id": pl.Int64(),
        "scope": pl.Int64(),
        "thread_id": pl.Int64(),
        "fw_thread_id": pl.Int64(),
        "stream": pl.Int64(),
        "raw_start_ns": pl.Int64(),
        "duration_ns": pl.Int64(),
        "exclusive_duration_ns": pl.Int64(),
        "op_schema": pl.String(),
        "kernel_backend": pl.String(),
        "kernel_file": pl.String(),
        "operation_count": pl.Int64(),
        "tensor_bytes": pl.Int64(),
    },
    "raw.chakra_edge": {
        "part": pl.Int32(),
        "from_node_id": pl.Int64(),
        "to_node_id": pl.Int64(),
        "kind": pl.String(),
        "origin": pl.String(),
    },
    "raw.chakra_communication": {
        **_KEY,
        "origin": pl.String(),
        "collective_name": pl.String(),
        "is_wait": pl.Boolean(),
        "sequence": pl.Int64(),
        "process_group_name": pl.String(),
        "process_group_description": pl.String(),
        "process_group_handle": pl.Int64(),
        "group_rank": pl.Int64(),
        "group_size": pl.Int64(),
        "global_rank_start": pl.Int64(),
        "global_rank_stride": pl.Int64(),
        "in_elements": pl.Int64(),
        "out_elements": pl.Int64(),
        "in_bytes": pl.Int64(),
        "out_bytes": pl.Int64(),
        "dtype": pl.String(),
        "in_split_sizes": pl.List(pl.Int64()),
        "out_split_sizes": pl.List(pl.Int64()),
        "source_rank": pl.Int64(),
        "destination_rank": pl.Int64(),
        "tag": pl.Int64(),
        "priority": pl.Int64(),
        "is_asynchronous": pl.Boolean(),
    },
    "raw.chakra_process_group": {
        **_KEY,
        "process_group_name": pl.String(),
        "description": pl.String(),
        "backend": pl.String(),
        "handle": pl.Int64(),
        "size": pl.Int64(),
        "ranks": pl.List(pl.Int64()),
    },
    "raw.chakra_tensor": {
        **_KEY,
        "direction": pl.String(),
        "argument": pl.Int64(),
        "element": pl.Int64(),
        "tensor_id": pl.Int64(),
        "storage_id": pl.Int64(),
        "storage_offset": pl.Int64(),
        "element_count": pl.Int64(),
        "element_bytes": pl.Int64(),
        "dtype": pl.String(),
        "device": pl.String(),
        "shape": pl.List(pl.Int64()),
        "strides": pl.List(pl.Int64()),
    },
    "raw.chakra_attribute": {**_KEY, "name": pl.String(), "value": pl.String()},
}


def frame_of(table: str, columns: Mapping[str, Column], height: int) -> pl.DataFrame:
    """Rows of a table.

    Args:
        table: one of `SCHEMAS`.
        columns: values by column; arrays of integers may hold `ABSENT`.
        height: number of rows.
    """
    frame = pl.DataFrame([_series(name, columns.get(name), kind, height) for name, kind in SCHEMAS[table].items()])
    missing = [name for name, values in columns.items() if isinstance(values, np.ndarray) and (values == ABSENT).any()]
    frame = frame.with_columns(pl.when(pl.col(name) != ABSENT).then(pl.col(name)) for name in missing)
    kinds = dict(zip(frame.columns, frame.dtypes, strict=True))
    return frame.with_columns(pl.col(name).cast(kind) for name, kind in SCHEMAS[table].items() if kinds[name] != kind)


def frame_of_rows(table: str, rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Rows of a table, given one by one; missing values become NULL."""
    return pl.DataFrame([dict(row) for row in rows], schema=SCHEMAS[table], orient="row")


def repeated(value: str | bool | None, kind: pl.DataType, height: int) -> pl.Series:
    """A column of one value."""
    return pl.Series([value], dtype=kind).new_from_index(0, height)


def _series(name: str, values: Column | None, kind: pl.DataType, height: int) -> pl.Series:
    if values is None:
        return repeated(None, kind, height).alias(name)
    if isinstance(values, np.ndarray):
        return pl.Series(name, values)
    return pl.Series(name, values, dtype=kind)
