"""What the steps of a rank are found from, and a step. All times are ns on the rank's own clock."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from traceforge.vocabulary import vocabulary

NUMBER = re.compile(r"\d+")
MOST_DIGITS = 9  # no job takes more steps, and more do not fit the column


@lru_cache(maxsize=10_000)
def _batch(name: str) -> str | None:
    return vocabulary().inference_step(name)


@dataclass(frozen=True, slots=True)
class Step:
    """One step; times in ns on the rank's own clock.

    Attributes:
        iteration: its number.
        is_whole: whether the window holds all of it.
        annotation: name of the annotation that was taken for it, `#` in the place of its number.
        is_from_peer: whether another rank marks it, and not this one.
    """

    iteration: int
    start_ns: int
    end_ns: int
    is_whole: bool = True
    annotation: str | None = None
    is_from_peer: bool = False


@dataclass(frozen=True, slots=True)
class Annotation:
    """A named stretch of the host; ns on the rank's own clock."""

    name: str
    is_profiler_step: bool
    start_ns: int
    end_ns: int

    @property
    def batch(self) -> str | None:
        """What this step of an inference engine is called; None where it is none."""
        return _batch(self.name)

    @property
    def pattern(self) -> str | None:
        """The name with `#` for its number, or what such a batch is called; None where it holds none, or several."""
        return self.batch or (NUMBER.sub("#", self.name) if len(NUMBER.findall(self.name)) == 1 else None)

    @property
    def names(self) -> set[str]:
        """What it can be found by; a batch by what it is called alone, as its name holds sizes."""
        return {self.batch} if self.batch else {self.name, self.pattern or self.name}

    @property
    def number(self) -> int:
        """The number in the name; -1 where no step could have it."""
        digits = NUMBER.findall(self.name)
        return int(digits[0]) if len(digits) == 1 and len(digits[0]) <= MOST_DIGITS else -1


@dataclass(frozen=True, slots=True)
class RankTrace:
    """What the steps of one rank are found from; ns on its own clock. A truncated one says nothing after `last_ns`.

    Attributes:
        calls: kind and time of issue of each, in order.
        names: what they are called on all ranks alike: the process group's name and the sequence number that the trace
            states; None where it states none.
        arrivals_ns: when they begin on the device, or on the host's thread, ascending.
        turns_ns: when the turns of its kernels begin; empty where they do not repeat, or were not looked at.
        optimizer_runs: how often kernels of an optimizer begin to run; 0 where none is known as such.
    """

    first_ns: int
    last_ns: int
    annotations: Sequence[Annotation]
    calls: Sequence[tuple[str, int]]
    is_truncated: bool = False
    turns_ns: Sequence[int] = ()
    optimizer_runs: int = 0
    arrivals_ns: Sequence[int] = ()
    names: Sequence[str | None] = ()


Steps = list[Step]


def between(starts_ns: Sequence[int], end_ns: int, first: int = 0) -> Steps:
    """Steps from each start to the next, the last one to an end; numbered from `first`."""
    edges = [*starts_ns, end_ns]
    return [Step(number, start, end) for number, (start, end) in enumerate(pairwise(edges), first) if start < end]
