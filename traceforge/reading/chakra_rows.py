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
_INT64 = pl.Int64()
_KEY = {"part": pl.Int32(), "position": _INT64, "node_id": _INT64}
SCHEMAS: dict[str, dict[str, pl.DataType]] = {
    "raw.chakra_file": {
        "part": pl.Int32(),
        "format": pl.String(),
        "schema_version": pl.String(),
        "wire_version": pl.String(),
        "has_metadata": pl.Boolean(),
        "is_complete": pl.Boolean(),
        "node_count": _INT64,
        "rank": pl.Int32(),
        "process_id": _INT64,
        "recorded_at": pl.String(),
        "raw_start_ns": _INT64,
        "raw_finish_ns": _INT64,
        "time_unit": pl.String(),
        "metadata": pl.String(),
    },
    "raw.chakra_node": {
        **_KEY,
        "name": pl.String(),
        "node_type": pl.String(),
        "parent_id": _INT64,
        "is_cpu": pl.Boolean(),
        "category": pl.String(),
        "rf_id": _INT64,
        "fw_parent_id": _INT64,
        "seq_id": _INT64,
        "scope": _INT64,
        "thread_id": _INT64,
        "fw_thread_id": _INT64,
        "stream": _INT64,
        "raw_start_ns": _INT64,
        "duration_ns": _INT64,
        "exclusive_duration_ns": _INT64,
        "op_schema": pl.String(),
        "kernel_backend": pl.String(),
        "kernel_file": pl.String(),
        "operation_count": _INT64,
        "tensor_bytes": _INT64,
    },
    "raw.chakra_edge": {
        "part": pl.Int32(),
        "from_node_id": _INT64,
        "to_node_id": _INT64,
        "kind": pl.String(),
        "origin": pl.String(),
    },
    "raw.chakra_communication": {
        **_KEY,
        "origin": pl.String(),
        "collective_name": pl.String(),
        "is_wait": pl.Boolean(),
        "sequence": _INT64,
        "process_group_name": pl.String(),
        "process_group_description": pl.String(),
        "process_group_handle": _INT64,
        "group_rank": _INT64,
        "group_size": _INT64,
        "global_rank_start": _INT64,
        "global_rank_stride": _INT64,
        "in_elements": _INT64,
        "out_elements": _INT64,
        "in_bytes": _INT64,
        "out_bytes": _INT64,
        "dtype": pl.String(),
        "in_split_sizes": pl.List(_INT64),
        "out_split_sizes": pl.List(_INT64),
        "source_rank": _INT64,
        "destination_rank": _INT64,
        "tag": _INT64,
        "priority": _INT64,
        "is_asynchronous": pl.Boolean(),
    },
    "raw.chakra_process_group": {
        **_KEY,
        "process_group_name": pl.String(),
        "description": pl.String(),
        "backend": pl.String(),
        "handle": _INT64,
        "size": _INT64,
        "ranks": pl.List(_INT64),
    },
    "raw.chakra_tensor": {
        **_KEY,
        "direction": pl.String(),
        "argument": _INT64,
        "element": _INT64,
        "tensor_id": _INT64,
        "storage_id": _INT64,
        "storage_position": _INT64,
        "element_count": _INT64,
        "element_bytes": _INT64,
        "dtype": pl.String(),
        "device": pl.String(),
        "shape": pl.List(_INT64),
        "strides": pl.List(_INT64),
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
    return frame.with_columns(pl.when(pl.col(name) != ABSENT).then(pl.col(name)) for name in missing)


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
        return pl.Series(name, values) if kind is _INT64 else pl.Series(name, values).cast(kind)
    return pl.Series(name, values, dtype=kind)
