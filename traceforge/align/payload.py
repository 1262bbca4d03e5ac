"""What communication moves. Reads raw.kineto_collective and raw.kineto_argument; fills align.payload.

Sizes come from element counts (PyTorch 2.3 and later) or, for gloo, from recorded input shapes. The "wait" records
that PyTorch writes for work handles move nothing and are left out.
"""

import math
from typing import TypeVar

import msgspec
import polars as pl

from traceforge.align.collective_names import collective_kinds, element_bytes, operation_of
from traceforge.store.database import Store

_STATED = """
SELECT c.source_id, c.event_id, c.collective_name, c.dtype, c.in_elements, c.out_elements, c.process_group_name,
  c.process_group_ranks, c.group_size, c.sequence, c.group_rank, c.global_rank_start, c.global_rank_stride, p.args
FROM raw.kineto_collective AS c
LEFT JOIN raw.kineto_argument AS p
  ON p.source_id = c.source_id AND p.event_id = c.event_id AND LOWER(c.collective_name) IN ('send', 'recv')
WHERE c.collective_name IS NULL OR LOWER(c.collective_name) <> 'wait'
ORDER BY c.source_id, c.event_id
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
    "peer": pl.Int32,
}


T = TypeVar("T")


class _PeerArguments(msgspec.Struct):
    destination: int | None = msgspec.field(name="Dst Rank", default=None)
    source: int | None = msgspec.field(name="Src Rank", default=None)


class _ShapeArguments(msgspec.Struct):
    dims: list[object] = msgspec.field(name="Input Dims", default_factory=list)
    types: list[str] = msgspec.field(name="Input type", default_factory=list)


def rows(store: Store) -> pl.DataFrame:
    """One row a communication event whose arguments say what it moves."""
    result = [_stated(row) for row in store.query(_STATED).iter_rows(named=True)]
    for source_id, event_id, name, args in store.query(_SHAPED).iter_rows():
        dtype, size_bytes = _shaped_size(args)
        result.append((source_id, event_id, operation_of(name), dtype, size_bytes, *[None] * 5))
    return pl.DataFrame(result, schema=_SCHEMA, orient="row").unique(["source_id", "event_id"], maintain_order=True)


def _stated(row: dict[str, object]) -> tuple[object, ...]:
    op = operation_of(str(row["collective_name"])) if row["collective_name"] else None
    dtype = str(row["dtype"]).lower() if row["dtype"] else None
    side = next((kind.size_of for kind in collective_kinds() if kind.name == op), "in")
    elements = row["out_elements"] if side == "out" else row["in_elements"]
    width = element_bytes().get(dtype) if dtype else None
    size = int(str(elements)) * width if width and elements is not None else None
    ranks = row["process_group_ranks"] if _is_full_list(row["process_group_ranks"], row["group_size"]) else None
    return (
        row["source_id"], row["event_id"], op, dtype, _fitting(size, 63),
        row["process_group_name"], ranks, row["group_size"], row["sequence"], _fitting(_peer(row, op, ranks), 31),
    )  # fmt: skip


def _peer(row: dict[str, object], op: str | None, ranks: object) -> int | None:
    """Global rank at the other end of a send or receive.

    PyTorch 2.9 and later write it ("Dst Rank", "Src Rank"); "Rank" is its place in the group before that, too.
    """
    if op not in ("send", "recv"):
        return None
    if (stated := _stated_peer(row["args"], op)) is not None:
        return stated
    members = msgspec.json.decode(str(ranks), type=list[int]) if ranks is not None else []
    place, first, stride = (row[name] for name in ("group_rank", "global_rank_start", "global_rank_stride"))
    if not isinstance(place, int):
        return None
    if 0 <= place < len(members):
        return members[place]
    return first + place * stride if isinstance(first, int) and isinstance(stride, int) and stride > 0 else None


def _decoded(text: object, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(str(text), type=kind)
    except msgspec.DecodeError:
        return None


def _stated_peer(args: object, op: str) -> int | None:
    stated = _decoded(args, _PeerArguments)
    return None if stated is None else stated.destination if op == "send" else stated.source


def _fitting(number: int | None, bits: int) -> int | None:
    """A number that fits its column, else None: a file may state anything."""
    return number if number is not None and -(2**bits) <= number < 2**bits else None


def _is_full_list(text: object, size: object) -> bool:
    ranks = _decoded(text, list[int])
    return bool(ranks) and (size is None or len(ranks or ()) == size)


def _shaped_size(args: str) -> tuple[str | None, int | None]:
    shapes = _decoded(args, _ShapeArguments)
    if shapes is None:
        return None, None
    sizes = [
        math.prod(dims) * element_bytes()[kind.lower()]
        for dims, kind in zip(shapes.dims, shapes.types, strict=False)
        if kind.lower() in element_bytes() and isinstance(dims, list) and all(isinstance(d, int) for d in dims)
    ]
    return (shapes.types[0].lower() if shapes.types else None), _fitting(sum(sizes) if sizes else None, 63)
