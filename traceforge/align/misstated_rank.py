"""Ranks that files state wrongly. In: files as rows. Out: the same, with the ranks of their names, or none.

Where each process was launched as if it were alone, or a framework sets the group up beside PyTorch's own, every trace
states rank 0. Idea: files that were recorded at one time and whose calls have several members cannot all be one rank.
Then ranks are those of names and folders where these differ; where every file states a job of one rank, which its calls
deny, the rank counts as not stated.
Not handled: ranks that are stated wrongly and differ, and calls whose size is not recorded.
"""

from pathlib import PurePosixPath

import polars as pl

from traceforge.store.naming import split_at_rank

MISSTATED = (
    "all files state one rank, but were recorded at one time and their calls have several members: ranks are taken "
    "from elsewhere"
)


def without_misstated_ranks(files: pl.DataFrame) -> pl.DataFrame:
    """Files with the ranks of their paths in the place of one that all of them state; as they are where it may be true.

    Args:
        files: columns path, rank, rank_origin, raw_first_ns, raw_last_ns, communicates, stated_ranks and world_size.
    """
    if not _is_one_rank(files):
        return files
    found = [split_at_rank(PurePosixPath(path)) for path in files["path"]]
    named = [place[1] for place in found if place is not None]
    if len(named) == files.height and len(set(named)) > 1 and _meet(files.with_columns(named=pl.Series(named))):
        origin = pl.lit("file_name")
        return files.with_columns(rank=pl.Series(named, dtype=pl.Int32), rank_origin=origin)
    if (files["world_size"] == 1).fill_null(value=False).all() and (files["stated_ranks"] == files.height).all():
        return files.with_columns(rank=pl.lit(None, dtype=pl.Int32), rank_origin=pl.lit("unknown"))
    return files


def _is_one_rank(files: pl.DataFrame) -> bool:
    is_stated = files.height > 1 and (files["rank_origin"] == "metadata").all() and files["rank"].n_unique() == 1
    return bool(is_stated and files["communicates"].all() and (files["stated_ranks"] > 1).fill_null(value=False).all())


def _meet(files: pl.DataFrame) -> bool:
    """Whether each file was recorded while one of another name was."""
    spans = files.select("named", "raw_first_ns", "raw_last_ns").drop_nulls().rows()
    return len(spans) == files.height and all(
        any(other != own and first < until and start < end for other, start, until in spans)
        for own, first, end in spans
    )
