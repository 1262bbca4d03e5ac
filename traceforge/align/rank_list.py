"""Lists of ranks, each read once. Reads raw.collective and raw.process_group; fills align.rank_list.

Each of R ranks writes lists of up to R ranks with all of its calls: kept by call, they would grow with R squared.
PyTorch writes more than 30 ranks as `[0, 1, …, 28, ..., 63]` (until 2.3 without the last one). The rest follows where
size, start and stride are stated beside the list and agree with it, or where the gap has room for just so many ranks.
Not handled: an empty list, which start and stride do not explain (they are 0 and 1 whenever PyTorch has no list).
"""

import re

import msgspec
import polars as pl

from traceforge.store.database import Store

_WRITTEN = """
SELECT process_group_ranks AS written, group_size, global_rank_start AS first_rank, global_rank_stride AS stride
FROM raw.collective
WHERE process_group_ranks IS NOT NULL
UNION
SELECT ranks, CASE WHEN CONTAINS(ranks, '...') THEN size END, NULL, NULL
FROM raw.process_group
WHERE ranks IS NOT NULL
ORDER BY ALL
"""

_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "rank_list_id": pl.Int32,
    "written": pl.String,
    "group_size": pl.Int32,
    "first_rank": pl.Int32,
    "stride": pl.Int32,
    "ranks": pl.List(pl.Int32),
}

# What a file says of a job's size is not believed beyond this: nobody runs so many.
MOST_RANKS = 1_000_000

_SHORTENED = re.compile(r"\[(?P<first>[0-9, ]+),\s*\.\.\.(?:,\s*(?P<last>[0-9]+))?\s*\]")


def rows(store: Store) -> pl.DataFrame:
    """One row a distinct list, with what is stated beside it."""
    found = [(number, *stated, ranks_of(*stated)) for number, stated in enumerate(store.rows(_WRITTEN))]
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def ranks_of(
    written: str, size: int | None = None, first: int | None = None, stride: int | None = None
) -> list[int] | None:
    """Member ranks of a list in the order written; None where they are not all known.

    Args:
        written: as in the trace.
        size: number of members stated beside it.
        first: first member stated beside it.
        stride: distance between members stated beside it.
    """
    shortened = _SHORTENED.fullmatch(written)
    if shortened is None:
        ranks = _decoded(written)
        return ranks if ranks and size in (None, len(ranks)) else None
    shown = _decoded(f"[{shortened['first']}]")
    last = None if shortened["last"] is None else int(shortened["last"])
    if shown is None or size is None or not len(shown) < size <= MOST_RANKS:
        return None
    if last is not None and last - shown[-1] == size - len(shown):
        return [*shown, *range(shown[-1] + 1, last + 1)]
    if first is None or stride is None or stride < 1:
        return None
    spaced = range(first, first + size * stride, stride)
    agrees = list(spaced[: len(shown)]) == shown and last in (None, spaced[-1])
    return list(spaced) if agrees and spaced[-1] < 2**31 else None


def _decoded(text: str) -> list[int] | None:
    try:
        return msgspec.json.decode(text, type=list[int])
    except msgspec.DecodeError:
        return None
