"""Windows of a profiler whose schedule repeats. In: what files hold, and when. Out: which window each file is of.

A window ends where one of its ranks begins anew, or long after all of its files ended.
Not handled: jobs of one time (see `jobs_of_one_time`).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from traceforge.thresholds import align as thresholds

# Rank, start and end of a file, ns.
Span = tuple[int, int, int]


def lie_apart(files: pl.DataFrame) -> bool:
    """Whether files of one host, whose clocks agree, were recorded long before others of it; files by start."""
    timed = files.filter(pl.col("host").is_not_null() & (pl.col("raw_first_ns") >= thresholds.EARLIEST_EPOCH_NS))
    until = pl.col("raw_last_ns").cum_max().shift(1).over("host")
    return not timed.filter(pl.col("raw_first_ns") > until + thresholds.LEAST_WINDOW_GAP_NS).is_empty()


def window_numbers(files: Sequence[Span], *, are_apart: bool = False) -> list[int]:
    """Which window of the profiler each file is of, from 0; files of a rank that overlap in time are not told apart.

    Where no stretch of time holds every rank although all have as many files, their clocks are far apart: then the
    first file of each rank is of the first window, and so on.

    Args:
        files: rank, start and end of each, ns, by start.
        are_apart: whether files of one host were recorded long before others of it.
    """
    counts = Counter(rank for rank, _, _ in files)
    if len(counts) == len(files):
        return _windows_by_time(files) if are_apart else [0] * len(files)
    numbers = _windows_by_time(files)
    ranks_in = defaultdict(set)
    for number, (rank, _, _) in zip(numbers, files, strict=True):
        ranks_in[number].add(rank)
    is_whole = any(len(ranks) == len(counts) for ranks in ranks_in.values())
    return numbers if is_whole or len(set(counts.values())) > 1 or _overlaps(files) else _turns(files)


def _windows_by_time(files: Sequence[Span]) -> list[int]:
    """A window ends where one of its ranks begins anew, or long after all of them ended."""
    numbers, number, last_ns = [], 0, files[0][2]
    until: dict[int, int] = {}
    for rank, first_ns, end_ns in files:
        is_anew = rank in until and first_ns >= until[rank]
        if is_anew or first_ns > last_ns + thresholds.LEAST_WINDOW_GAP_NS:
            number += 1
            until.clear()
        until[rank] = max(end_ns, until.get(rank, end_ns))
        last_ns = max(last_ns, end_ns)
        numbers.append(number)
    return numbers


def _turns(files: Sequence[Span]) -> list[int]:
    """How many files of its rank precede each."""
    seen = Counter[int]()
    turns = []
    for rank, _, _ in files:
        turns.append(seen[rank])
        seen[rank] += 1
    return turns


def _overlaps(files: Sequence[Span]) -> bool:
    """Whether two files of one rank were recorded at one time."""
    return any(
        rank == other and first_ns < end_ns for (rank, _, end_ns), (other, first_ns, _) in pairwise(sorted(files))
    )
