"""Ranks of files whose names count the ranks of each host. In: files with path, time, stated size. Out: a rank each.

`node1_rank2`, `node1/rank2.json` and `host1_gpu2` hold the local rank (LOCAL_RANK of torchrun). Idea: what precedes the
number in the path tells the hosts apart; each of them holds the same numbers from 0 on; and all files together are as
many as the communicator that every one of them states, so that they cannot be jobs of their own.
Hosts follow one another in the natural order of their names, as launchers number them.
Not handled: hosts with unequal numbers of ranks, jobs of which not every rank was recorded, files that state no size.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePosixPath

import polars as pl

from traceforge.align.trace_ranks import LONGEST_RANK
from traceforge.store.naming import split_at_rank

_DIGITS = re.compile(r"(\d+)")


def by_local_rank(files: pl.DataFrame) -> pl.Series | None:
    """A rank for each file, where names count local ranks; None where they do not, or it is not certain.

    Args:
        files: columns path, rank, rank_origin and stated_ranks; ranks all unknown or all from names.
    """
    if files.height < 2 or not (files["stated_ranks"] == files.height).fill_null(value=False).all():
        return None
    places = _of_names(files) if files["rank"].is_null().all() else _of_ranks(files)
    hosts = defaultdict[str, list[int]](list)
    for host, local in places:
        hosts[host].append(local)
    size = files.height // max(len(hosts), 1)
    if len(hosts) < 2 or any(sorted(locals_) != list(range(size)) for locals_ in hosts.values()):
        return None
    first = {host: place * size for place, host in enumerate(sorted(hosts, key=natural))}
    return pl.Series([first[host] + local for host, local in places], dtype=pl.Int32)


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key by which `node2` precedes `node10`."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _DIGITS.split(name) if part]


def _of_ranks(files: pl.DataFrame) -> Sequence[tuple[str, int]]:
    """What precedes the rank in each path, and the rank; none where one was not read from the path."""
    if not files["rank_origin"].is_in(["file_name", "folder_name"]).all():
        return []
    places = [place for path in files["path"] if (place := split_at_rank(PurePosixPath(path))) is not None]
    return places if [rank for _, rank in places] == files["rank"].to_list() else []


def _of_names(files: pl.DataFrame) -> Sequence[tuple[str, int]]:
    """What precedes the last number that differs between paths, and the number; none where they are not alike."""
    parts = [_DIGITS.split(path) for path in files["path"]]
    if len({len(own) for own in parts}) != 1:
        return []
    columns = list(zip(*parts, strict=True))
    varying = [
        place
        for place in range(1, len(columns), 2)
        if 1 < len(set(columns[place])) < files.height and all(len(part) <= LONGEST_RANK for part in columns[place])
    ]
    if not varying:
        return []
    return [("".join(own[: varying[-1]]), int(own[varying[-1]])) for own in parts]
