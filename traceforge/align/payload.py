"""What communication moves. Reads raw.collective, raw.argument and align.rank_list; fills align.payload.

Peers and tags of messages stand in the inputs of c10d::send and c10d::recv_, where shapes were recorded. Sizes come
from element counts (PyTorch 2.3 and later) or, for gloo, from recorded input shapes. The "wait" records that PyTorch
writes for work handles move nothing and are left out.
"""

import math
from collections.abc import Iterator
from typing import TypeVar

import msgspec
import numpy as np
import polars as pl

from traceforge.align.collective_names import collective_kinds, element_bytes, operation_of
from traceforge.align.rank_batches import file_batches
from traceforge.store.database import Store

_STATED = """
SELECT c.source_id, c.event_id, c.collective_name, c.dtype AS written_dtype, c.in_elements, c.out_elements,
  c.process_group_name, l.rank_list_id, c.group_size, c.sequence
FROM raw.collective AS c
LEFT JOIN align.rank_list AS l
  ON l.ranks IS NOT NULL AND l.written = c.process_group_ranks AND l.group_size IS NOT DISTINCT FROM c.group_size
  AND l.first_rank IS NOT DISTINCT FROM c.global_rank_start AND l.stride IS NOT DISTINCT FROM c.global_rank_stride
WHERE (c.collective_name IS NULL OR LOWER(c.collective_name) <> 'wait') AND c.source_id BETWEEN $1 AND $2
ORDER BY c.source_id, c.event_id
"""

_MESSAGES = """
SELECT c.source_id, c.event_id, c.collective_name, c.group_rank, c.global_rank_start, c.global_rank_stride, p.args
FROM raw.collective AS c
LEFT JOIN raw.argument AS p USING (source_id, event_id)
WHERE LIST_CONTAINS($3, c.collective_name) AND c.source_id BETWEEN $1 AND $2
"""

_LISTS = "SELECT rank_list_id, ranks FROM align.rank_list WHERE ranks IS NOT NULL"

_SHAPED = """
SELECT a.source_id, a.event_id, e.name, a.args
FROM raw.argument AS a
JOIN raw.event AS e USING (source_id, event_id)
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
WHERE c.class = 'host_communication' AND a.source_id BETWEEN $1 AND $2
ORDER BY a.source_id, a.event_id
"""

_CALLED = """
SELECT a.source_id, a.event_id, e.name, a.args
FROM raw.argument AS a
JOIN raw.event AS e USING (source_id, event_id)
JOIN align.name_class AS c ON c.category IS NOT DISTINCT FROM e.category AND c.name = e.name
WHERE c.class = 'communication_call' AND c.op IN ('send', 'recv') AND STARTS_WITH(e.name, 'c10d::')
  AND a.source_id BETWEEN $1 AND $2
ORDER BY a.source_id, a.event_id
"""

_SCHEMA = {
    "source_id": pl.Int32,
    "event_id": pl.Int64,
    "op": pl.String,
    "dtype": pl.String,
    "size_bytes": pl.Int64,
    "process_group_name": pl.String,
    "rank_list_id": pl.Int32,
    "group_size": pl.Int32,
    "sequence": pl.Int64,
    "peer": pl.Int32,
    "peer_place": pl.Int32,
    "tag": pl.Int64,
}
_EVENT = ["source_id", "event_id"]
_LARGEST = int(np.iinfo(np.int64).max)


# What c10d::send and c10d::recv_ take (PyTorch 2.0 to 2.13); receives from anyone have no peer.
_CALL_ARGUMENTS = ("tensors", "process_group", "peer", "tag")

T = TypeVar("T")


class _PeerArguments(msgspec.Struct):
    destination: int | None = msgspec.field(name="Dst Rank", default=None)
    source: int | None = msgspec.field(name="Src Rank", default=None)


class _ShapeArguments(msgspec.Struct):
    dims: list[object] = msgspec.field(name="Input Dims", default_factory=list)
    types: list[str] = msgspec.field(name="Input type", default_factory=list)


class _CallArguments(msgspec.Struct):
    concrete: list[str] = msgspec.field(name="Concrete Inputs", default_factory=list)


def rows(store: Store) -> Iterator[pl.DataFrame]:
    """One row a communication event whose arguments say what it moves, some files at a time."""
    for files in file_batches(store):
        with store.narrowed(*files):
            found = _of_files(store, files)
        yield found


def _of_files(store: Store, files: tuple[int, int]) -> pl.DataFrame:
    """Of the first and the last of some files, and those between."""
    stated = _with_kinds(store.query(_STATED, files))
    stated = stated.join(_peers(store, stated, files), on=_EVENT, how="left", maintain_order="left")
    shaped = [
        (source_id, event_id, operation_of(name), *_shaped_size(args))
        for source_id, event_id, name, args in store.query(_SHAPED, files).iter_rows()
    ]
    schema = {name: _SCHEMA[name] for name in (*_EVENT, "op", "dtype", "size_bytes")}
    sized = pl.DataFrame(shaped, schema=schema, orient="row")
    found = pl.concat([stated, sized, _called(store, files)], how="diagonal").select(list(_SCHEMA))
    return found.unique(_EVENT, maintain_order=True)


def _called(store: Store, files: tuple[int, int]) -> pl.DataFrame:
    """Calls that send or receive, with the place of the other rank in the process group, and the tag."""
    found = [
        (source_id, event_id, operation_of(name), *_place_and_tag(args))
        for source_id, event_id, name, args in store.query(_CALLED, files).iter_rows()
    ]
    schema = {name: _SCHEMA[name] for name in (*_EVENT, "op", "peer_place", "tag")}
    return pl.DataFrame(found, schema=schema, orient="row")


def _with_kinds(stated: pl.DataFrame) -> pl.DataFrame:
    """With `op`, `dtype` and `size_bytes`: names recur, so that each is looked up once."""
    sides = {kind.name: kind.size_of for kind in collective_kinds()}
    ops = {name: operation_of(name) for name in stated["collective_name"].unique() if name}
    dtypes = {name: name.lower() for name in stated["written_dtype"].unique() if name}
    widths = {name: element_bytes().get(name) for name in dtypes.values()}
    op = pl.col("collective_name").replace_strict(ops, default=None, return_dtype=pl.String)
    side = op.replace_strict(sides, default="in", return_dtype=pl.String)
    elements = pl.when(side == "out").then("out_elements").otherwise("in_elements")
    dtype = pl.col("written_dtype").replace_strict(dtypes, default=None, return_dtype=pl.String)
    width = dtype.replace_strict(widths, default=None, return_dtype=pl.Int64)
    fits = elements.is_between(-(_LARGEST // width), _LARGEST // width)
    return stated.with_columns(op=op, dtype=dtype, size_bytes=pl.when(fits).then(elements * width))


def _peers(store: Store, stated: pl.DataFrame, files: tuple[int, int]) -> pl.DataFrame:
    """Global rank at the other end of each send and receive, where it is known."""
    messages = stated.filter(pl.col("op").is_in(["send", "recv"]))
    names = messages["collective_name"].unique().to_list()
    places = messages.select(*_EVENT, "op", "rank_list_id")
    if names:
        found = store.query(_MESSAGES, [*files, names]).join(places, on=_EVENT)
        lists = dict(store.rows(_LISTS))
        peers = [
            (row["source_id"], row["event_id"], _fitting(_peer(row, lists.get(row["rank_list_id"], [])), 31))
            for row in found.iter_rows(named=True)
        ]
    else:
        peers = []
    schema = {name: _SCHEMA[name] for name in (*_EVENT, "peer")}
    return pl.DataFrame(peers, schema=schema, orient="row").unique(_EVENT)


def _peer(row: dict[str, object], members: list[int]) -> int | None:
    """Global rank at the other end of a send or receive.

    PyTorch 2.9 and later write it ("Dst Rank", "Src Rank"); "Rank" is its place in the group before that, too.
    """
    if (stated := _stated_peer(row["args"], str(row["op"]))) is not None:
        return stated
    place, first, stride = (row[name] for name in ("group_rank", "global_rank_start", "global_rank_stride"))
    if not isinstance(place, int):
        return None
    if 0 <= place < len(members):
        return members[place]
    return first + place * stride if isinstance(first, int) and isinstance(stride, int) and stride > 0 else None


def _place_and_tag(args: str) -> tuple[int | None, int | None]:
    stated = _decoded(args, _CallArguments)
    if stated is None or len(stated.concrete) != len(_CALL_ARGUMENTS):
        return None, None
    place, tag = (_integer(text) for text in stated.concrete[-2:])
    return (_fitting(place, 31) if place is not None and place >= 0 else None), _fitting(tag, 63)


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _decoded(text: object, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(str(text), type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def _stated_peer(args: object, op: str) -> int | None:
    stated = _decoded(args, _PeerArguments)
    return None if stated is None else stated.destination if op == "send" else stated.source


def _fitting(number: int | None, bits: int) -> int | None:
    """A number that fits its column, else None: a file may state anything."""
    return number if number is not None and -(2**bits) <= number < 2**bits else None


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
