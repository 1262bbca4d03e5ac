"""Ranks of names that calls deny. In: files as rows. Out: the same, with other ranks where a name's cannot be true.

PyTorch writes the members of a group with each call, by their ranks in the job, and whoever calls is one of them. So a
file called `rank4` whose calls are of ranks 0 to 3 is no rank 4: its name counts from 1, or holds a process or another
number. Names of one launcher are alike; where one is denied, none counts.
Not handled: calls whose members are not written, or not in full.
"""

import polars as pl

from traceforge.align.guessed_rank import guessed_ranks
from traceforge.align.local_rank import by_local_rank
from traceforge.align.rank_list import ranks_of

MISNAMED = (
    "names of files hold ranks that are not among the members of the groups in which they call: names that fit if "
    "counted from 1 are, others are not taken for ranks"
)

# Members of the groups in which files call whose names hold a rank.
MEMBER_LISTS = """members AS (
  SELECT c.source_id, LIST(DISTINCT c.process_group_ranks) AS member_lists
  FROM raw.collective AS c
  JOIN meta.source AS s USING (source_id)
  WHERE s.rank_origin IN ('file_name', 'folder_name')
  GROUP BY c.source_id
)"""


def without_denied_names(files: pl.DataFrame) -> pl.DataFrame:
    """Files with ranks of names counted from 1, or not taken from names, where calls deny one; else as they are.

    Args:
        files: columns path, rank, rank_origin, member_lists (as written; NULL where calls have none) and all that
            guesses ask for (see `guessed_rank`).
    """
    is_named = files["rank"].is_not_null().all() and files["rank_origin"].is_in(["file_name", "folder_name"]).all()
    if not is_named:
        return files
    members = [_members(lists) for lists in files["member_lists"].to_list()]
    ranks = files["rank"].to_list()
    if all(not own or rank in own for rank, own in zip(ranks, members, strict=True)):
        return files
    if all(own and rank - 1 in own for rank, own in zip(ranks, members, strict=True)):
        return files.with_columns(rank=pl.col("rank") - 1)
    unnamed = files.with_columns(rank=pl.lit(None, dtype=pl.Int32), rank_origin=pl.lit("unknown"))
    is_known_otherwise = by_local_rank(files) is None and guessed_ranks(unnamed) is not None
    return unnamed if is_known_otherwise else files


def _members(lists: list[str | None] | None) -> set[int]:
    """Ranks with which a file calls; empty where they are not all known."""
    found = [ranks_of(written) for written in lists or () if written is not None]
    return set() if None in found else {rank for own in found if own for rank in own}
