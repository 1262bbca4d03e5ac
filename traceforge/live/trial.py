"""Paced and unpaced blocks in turns. In: how long each step took. Out: which arm is next; the gain, with its interval.

Idea: two neighbouring blocks see the same machine, so each pair says by what factor pacing changes throughput; many
pairs say how surely. Which block of a pair comes first is drawn from the number of the pair, so that all ranks agree
without a word. Not handled: a job whose steps repeat with a period of two blocks.
"""

import math
import random
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

CONFIDENCE = 0.95


class Gain(NamedTuple):
    """Throughput with pacing over throughput without, less 1, and its interval; infinite ends below two pairs."""

    value: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True, slots=True)
class TurnBlocks:
    """How steps are dealt to the arms.

    Attributes:
        first_step: steps before are warm-up, in which nobody is paced.
        length: steps of a block.
        settling: steps at the begin of a block that do not count.
    """

    first_step: int = 20
    length: int = 25
    settling: int = 3

    def place(self, step: int) -> tuple[int, int]:
        """Number of the block of a step, -1 in warm-up, and the place in it."""
        if step < self.first_step:
            return -1, step
        return divmod(step - self.first_step, self.length)

    def is_paced(self, step: int) -> bool:
        """Whether a step may be paced."""
        block, _ = self.place(step)
        if block < 0:
            return False
        first_is_paced = random.Random(block // 2).random() >= 1 / 2  # noqa: S311  # agreed on, not secret
        return (block % 2 == 0) == first_is_paced


class PacingTrial:
    """Gathers steps and tells the gain so far."""

    def __init__(self, blocks: TurnBlocks) -> None:
        self._blocks = blocks
        self._sums: dict[int, list[int]] = {}
        self._changes: list[float] = []

    def saw(self, step: int, duration_ns: int) -> bool:
        """Take in a step; whether it completed a pair of blocks."""
        block, place = self._blocks.place(step)
        if block < 0:
            return False
        if place >= self._blocks.settling:
            self._sums.setdefault(block, []).append(duration_ns)
        if block % 2 == 0 or place < self._blocks.length - 1:
            return False
        last, other = self._sums.get(block, []), self._sums.get(block - 1, [])
        paced, unpaced = (last, other) if self._blocks.is_paced(step) else (other, last)
        self._sums.clear()
        if not paced or not unpaced or not fmean(paced) > 0 or not fmean(unpaced) > 0:
            return False
        self._changes.append(math.log(fmean(unpaced) / fmean(paced)))
        return True

    def gain(self) -> Gain:
        """What pacing brought so far."""
        pairs = len(self._changes)
        if pairs < 2:
            return Gain(math.expm1(fmean(self._changes)) if pairs else 0.0, -math.inf, math.inf, pairs)
        centre = fmean(self._changes)
        error = student_95(pairs - 1) * stdev(self._changes) / math.sqrt(pairs)
        return Gain(math.expm1(centre), math.expm1(centre - error), math.expm1(centre + error), pairs)


def student_95(degrees: int) -> float:
    """Two-sided point of Student's t: exact for one and two degrees, else by Fisher's expansion, within 1 %."""
    if degrees <= 2:
        return (12.706, 4.303)[degrees - 1]
    z, n = NormalDist().inv_cdf((1 + CONFIDENCE) / 2), degrees
    first = (z**3 + z) / (4 * n)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    return z + first + second + third
