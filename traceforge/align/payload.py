"""What communication moves. Reads raw.kineto_collective and raw.kineto_argument; fills align.payload.

Sizes come from element counts (PyTorch 2.3 and later) or, for gloo, from recorded input shapes. The "wait" records
that PyTorch writes for work handles move nothing and are left out.
"""

import math

import msgspec
import polars as pl

from traceforge.align.collective_names import element_bytes, operation_of, operations
from traceforge.store.database import Store

_STATED = """
SELECT source_id, event_id, collective_name, dtype, in_elements, out_elements, process_group_name,
  process_group_ranks, group_size, sequence
FROM raw.kineto_collective
WHERE collective_name IS NULL OR LOWER(collective_name) <> 'wait'
ORDER BY source_id, event_id
"""

_SHAPED = """
SELECT a.source_id, a.event_id, e.name, a.args
FROM raw.kineto_argument AS a
JOIN raw.kineto_event AS e USING (source_id, event_id)
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
WHERE c.class = 'host_communication'
ORDER BY a.source_id, a.event_id
"""

_SCHEMA = {
    "source_id": pl.Int32,
    "event_id": pl.Int64,
    "op": pl.String,
    "dtype": pl.String,
    "size_bytes": pl.Int64,
    "process_group_name": pl.String,
    "process_group_ranks": pl.String,
    "group_size": pl.Int32,
    "sequence": pl.Int64,
}


class _ShapeArguments(msgspec.Struct):
    dims: list[object] = msgspec.field(name="Input Dims", default_factory=list)
    types: list[str] = msgspec.field(name="Input type", default_factory=list)


def rows(store: Store) -> pl.DataFrame:
    """One row a communication event whose arguments say what it moves."""
    result = [_stated(row) for row in store.query(_STATED).iter_rows(named=True)]
    for source_id, event_id, name, args in store.query(_SHAPED).iter_rows():
        dtype, size_bytes = _shaped_size(args)
        result.append((source_id, event_id, operation_of(name), dtype, size_bytes, None, None, None, None))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row").unique(["source_id", "event_id"], maintain_order=True)


def _stated(row: dict[str, object]) -> tuple[object, ...]:
    op = operation_of(str(row["collective_name"])) if row["collective_name"] else None
    dtype = str(row["dtype"]).lower() if row["dtype"] else None
    side = next((o.size_of for o in operations() if o.name == op), "in")
    elements = row["out_elements"] if side == "out" else row["in_elements"]
    width = element_bytes().get(dtype) if dtype else None
    size = int(str(elements)) * width if width and elements is not None else None
    ranks = row["process_group_ranks"] if _is_full_list(row["process_group_ranks"], row["group_size"]) else None
    return (
        row["source_id"], row["event_id"], op, dtype, size,
        row["process_group_name"], ranks, row["group_size"], row["sequence"],
    )  # fmt: skip


def _is_full_list(text: object, size: object) -> bool:
    try:
        ranks = msgspec.json.decode(str(text), type=list[int])
    except msgspec.DecodeError:
        return False
    return bool(ranks) and (size is None or len(ranks) == size)


def _shaped_size(args: str) -> tuple[str | None, int | None]:
    try:
        shapes = msgspec.json.decode(args, type=_ShapeArguments)
    except msgspec.DecodeError:
        return None, None
    sizes = [
        math.prod(dims) * element_bytes()[kind.lower()]
        for dims, kind in zip(shapes.dims, shapes.types, strict=False)
        if kind.lower() in element_bytes() and isinstance(dims, list) and all(isinstance(d, int) for d in dims)
    ]
    return (shapes.types[0].lower() if shapes.types else None), (sum(sizes) if sizes else None)
