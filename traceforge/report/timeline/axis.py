"""One line of time for the whole run. In: where each rank's iterations lie. Out: `TimeAxis`, whole steps from 0 on.

Iterations follow one another as they did. Time in which nothing was recorded is left out, as between the cycles of a
profiler's schedule; so iterations of ranks without a common clock cannot drift apart either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from traceforge.report.job import Iteration

Integers = NDArray[np.int64]

_COARSE_NS = 1_000
_FINE_NS = 10
_COARSE_FROM_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Where iterations and ranks lie on the line; keys are numbers of iterations, and pairs of these and ranks.

    Attributes:
        step_ns: length of a step.
        numbers: the iterations in their order.
        offset_ns: where each begins on the line.
        extent_ns: from there to the last end of a rank.
        origin_ns: what the tables call that instant, by iteration and rank.
        unaligned: ranks without a common clock, whose iterations are drawn from their own beginning.
    """

    step_ns: int
    numbers: tuple[int, ...]
    offset_ns: Mapping[int, int]
    extent_ns: Mapping[int, int]
    origin_ns: Mapping[tuple[int, int], int]
    unaligned: tuple[int, ...]

    def steps(self, times_ns: Integers) -> Integers:
        """Times on the line as whole steps."""
        return np.rint(times_ns / self.step_ns).astype(np.int64)

    def step_at(self, iteration: int, rank: int, aligned_ns: float) -> int:
        """An instant of the tables as a step of the line."""
        at_ns = self.offset_ns[iteration] + aligned_ns - self.origin_ns[iteration, rank]
        return round(at_ns / self.step_ns)


def read_axis(iterations: Sequence[Iteration], origins: pl.DataFrame) -> TimeAxis:
    """The line through these iterations.

    Args:
        origins: rows of sections/timeline_origins.
    """
    numbers = sorted(iteration.number for iteration in iterations)
    own = origins.filter(pl.col("iteration").is_in(numbers))
    ends = own.group_by("iteration").agg(
        (pl.col("start_ns") + pl.col("duration_ns") - pl.col("origin_ns")).max().alias("extent_ns")
    )
    extent_ns = dict(ends.iter_rows())
    starts = {iteration.number: iteration.start_ns for iteration in iterations}
    numbers = sorted((number for number in numbers if number in extent_ns), key=lambda number: (starts[number], number))
    offset_ns: dict[int, int] = {}
    before = None
    for number in numbers:
        offset_ns[number] = 0 if before is None else offset_ns[before] + _between(before, number, starts, extent_ns)
        before = number
    origin_ns = {(row[0], row[1]): row[2] for row in own.select("iteration", "rank", "origin_ns").iter_rows()}
    unaligned = sorted(set(own.filter("is_unaligned")["rank"].to_list()))
    is_coarse = max(extent_ns.values(), default=0) >= _COARSE_FROM_NS
    step_ns = _COARSE_NS if is_coarse else _FINE_NS
    return TimeAxis(step_ns, tuple(numbers), offset_ns, extent_ns, origin_ns, tuple(unaligned))


def _between(before: int, number: int, starts: Mapping[int, int], extent_ns: Mapping[int, int]) -> int:
    passed = starts[number] - starts[before]
    return passed if 0 < passed <= extent_ns[before] else extent_ns[before]
